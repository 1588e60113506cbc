#include "prepared.h"

namespace headrace {
namespace {

enum class Part : int64_t { kMaximum = 0, kMean = 1, kMaximumGradient = 2, kMeanGradient = 3 };

}  // namespace

Prepared PreparePool(const int64_t* numbers) {
  const auto type = TypeOf(numbers[0]);
  const auto part = static_cast<Part>(numbers[1]);
  const int64_t rank = numbers[2], batch = numbers[3], channels = numbers[4];
  const auto sizes = [&](int which) {
    const int64_t* at = numbers + 5 + which * kMostSpatial;
    return Dims(at, at + rank);
  };
  const Dims window = sizes(1), strides = sizes(3), before = sizes(4), after = sizes(5);
  const auto x = ChannelsLast(batch, channels, sizes(0), type);
  const auto y = ChannelsLast(batch, channels, sizes(2), type);
  const bool maximum = part == Part::kMaximum || part == Part::kMaximumGradient;
  const bool forward_only = part == Part::kMaximum || part == Part::kMean;
  const auto algorithm = maximum ? dnnl::algorithm::pooling_max
                                 : dnnl::algorithm::pooling_avg_exclude_padding;
  // Training keeps where the maxima stood.
  const auto kind =
      forward_only ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  const Dims dense(rank, 0);
  const dnnl::pooling_forward::primitive_desc forward(Cpu(), kind, algorithm, x, y, strides,
                                                      window, dense, before, after, Attributes());
  if (forward_only) {
    Prepared made({x}, y);
    made.Add<decltype(forward), dnnl::pooling_forward>(
        forward, {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DST, made.result()}});
    return made;
  }
  const dnnl::pooling_backward::primitive_desc backward(Cpu(), algorithm, x, y, strides, window,
                                                        dense, before, after, forward,
                                                        Attributes());
  if (part == Part::kMeanGradient) {
    Prepared made({y}, x);
    made.Add<decltype(backward), dnnl::pooling_backward>(
        backward, {{DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_DIFF_SRC, made.result()}});
    return made;
  }
  Prepared made({x, y}, x);
  const size_t maxima = made.Scratch(y), places = made.Scratch(forward.workspace_desc());
  made.Add<decltype(forward), dnnl::pooling_forward>(
      forward, {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DST, maxima}, {DNNL_ARG_WORKSPACE, places}});
  made.Add<decltype(backward), dnnl::pooling_backward>(
      backward,
      {{DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_WORKSPACE, places}, {DNNL_ARG_DIFF_SRC, made.result()}});
  return made;
}

}  // namespace headrace
