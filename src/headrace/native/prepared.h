// A case of an operation that is compiled: steps between pieces of memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "operations.h"

namespace headrace {

using Dims = dnnl::memory::dims;

const dnnl::engine& Cpu();

dnnl::memory::data_type TypeOf(int64_t element);

// [batch, channels, spatial...] that lies in memory as [batch, spatial..., channels].
dnnl::memory::desc ChannelsLast(int64_t batch, int64_t channels, const Dims& sizes,
                                dnnl::memory::data_type type);

// Primitives are told where to keep what they need for themselves.
dnnl::primitive_attr Attributes();

struct Step {
  dnnl::primitive primitive;
  // By number of an argument of the library: which piece.
  std::vector<std::pair<int, size_t>> arguments;
};

class Prepared {
 public:
  // The pieces begin with the operands and the result.
  Prepared(std::vector<dnnl::memory::desc> operands, const dnnl::memory::desc& result)
      : operands_(operands.size()), pieces_(std::move(operands)) {
    pieces_.push_back(result);
  }

  size_t result() const { return operands_; }

  // A piece of memory that only the steps see.
  size_t Scratch(const dnnl::memory::desc& desc) {
    pieces_.push_back(desc);
    return pieces_.size() - 1;
  }

  // A piece as a primitive wants it: laid out anew before, where it does not lie so.
  size_t Wanted(size_t piece, const dnnl::memory::desc& wanted);

  template <typename Description, typename Primitive>
  void Add(const Description& found, std::vector<std::pair<int, size_t>> arguments) {
    is_fast_ = is_fast_ && std::string(found.impl_info_str()).rfind("ref", 0) != 0;
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, Scratch(found.scratchpad_desc()));
    steps_.push_back({Primitive(found), std::move(arguments)});
  }

  // The result from a piece that a primitive has written.
  void Give(size_t piece);

  // Raises what oneDNN raises, and std::invalid_argument for buffers of other sizes.
  void Execute(const std::vector<Buffer>& operands, Buffer result) const;

  // Whether the library has more than its loops of reference for every step.
  bool is_fast() const { return is_fast_; }

 private:
  void Reorder(size_t from, size_t to);

  size_t operands_;
  std::vector<dnnl::memory::desc> pieces_;
  std::vector<Step> steps_;
  bool is_fast_ = true;
};

Prepared PrepareConvolution(const int64_t* numbers);
Prepared PrepareProduct(const int64_t* numbers);
Prepared PreparePool(const int64_t* numbers);

}  // namespace headrace
