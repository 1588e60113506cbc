// Operations by oneDNN, on plain pointers: nothing here knows of XLA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

// What elements are, as the numbers of every operation begin.
enum class Element : int64_t { kFloat32 = 0, kBfloat16 = 1 };

constexpr int kMostSpatial = 3;

// An operation is told its case by `numbers`; all elements are of one type.
struct Operation {
  int64_t number;  // of the operation
  const char* name;
  size_t length;  // of the numbers
};

// Numbers: element, pass, spatial dimensions, batch, groups, channels in and out (of all groups);
// then by spatial dimension: input, filter and output sizes, strides, dilations, padding before and
// after.
//
// Operands are, for the forward pass (0), input and filter; for the input gradient (1), the filter
// and the gradient of the output; for the filter gradient (2), the input and the gradient of the
// output. Data has its channels last, filters their spatial dimensions first.
inline constexpr Operation kConvolution{0, "convolution", 7 + 7 * kMostSpatial};

// Numbers: element, matrices in a stack, rows, terms and columns of a product, and whether the
// first and the second matrix lie across (0 or 1). Operands are [stack, rows, terms] (across:
// [stack, terms, rows]) and [stack, terms, columns] (across: [stack, columns, terms]).
inline constexpr Operation kProduct{1, "product", 7};

// Numbers: element, part, spatial dimensions, batch, channels; then by spatial dimension: input,
// window and output sizes, strides, padding before and after.
//
// Operands are, for a maximum (part 0) and a mean (1), the input; for the gradient of a maximum (2),
// the input and the gradient of the output; for that of a mean (3), the gradient of the output.
// Channels are last; padding counts for nothing.
inline constexpr Operation kPool{2, "pool", 5 + 6 * kMostSpatial};

struct Buffer {
  const void* data;
  size_t bytes;
};

// Runs a case. Writes why it cannot be done to `error` and answers false; a thread count of 0
// leaves OpenMP's.
bool Run(const Operation& operation, const int64_t* numbers, int threads,
         const std::vector<Buffer>& operands, Buffer result, std::string* error);

// Whether the library has more than its reference loops for a case, and the processor has
// instructions for its elements.
bool IsFast(const Operation& operation, const int64_t* numbers, int threads);

// Cases that are kept compiled.
size_t CountOfPrepared();

}  // namespace headrace
