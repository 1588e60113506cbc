// Convolutions by oneDNN, on plain pointers: nothing here knows of XLA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace headrace {

enum class Pass : int64_t { kForward = 0, kInput = 1, kFilter = 2 };

constexpr int kMostSpatial = 3;
// pass, spatial dimensions, batch, groups, channels in and out (of all groups), then by spatial
// dimension: input, filter and output sizes, strides, dilations, padding before and after.
constexpr size_t kLengthOfGeometry = 6 + 7 * kMostSpatial;

// Writes why it cannot be done to `error` and answers false; a thread count of 0 leaves OpenMP's.
//
// For the forward pass `first` and `second` are the input and the filter; for the input gradient,
// the filter and the gradient of the output; for the filter gradient, the input and the gradient of
// the output. Data is float32 with channels last, filters have the spatial dimensions first.
bool Convolve(const int64_t* geometry, int threads, const float* first, const float* second,
              float* result, std::string* error);

// Whether the library has more than its reference loops for this convolution.
bool HasFastConvolution(const int64_t* geometry, int threads);

// Convolutions that are kept ready.
size_t CountOfPrimitives();

}  // namespace headrace
