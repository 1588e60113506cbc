#include "prepared.h"

namespace headrace {
namespace {

using dnnl::memory;

enum class Pass : int64_t { kForward = 0, kInput = 1, kFilter = 2 };

struct Geometry {
  memory::data_type type;
  Pass pass;
  int64_t rank, batch, groups, inputs, outputs;
  Dims in, taps, out, strides, dilations, before, after;

  explicit Geometry(const int64_t* n)
      : type(TypeOf(n[0])),
        pass(static_cast<Pass>(n[1])),
        rank(n[2]),
        batch(n[3]),
        groups(n[4]),
        inputs(n[5]),
        outputs(n[6]) {
    Dims* const each[] = {&in, &taps, &out, &strides, &dilations, &before, &after};
    for (int i = 0; i < 7; ++i) {
      const int64_t* at = n + 7 + i * kMostSpatial;
      each[i]->assign(at, at + rank);
    }
    for (int64_t& d : dilations) --d;  // the library counts what lies between two taps
  }

  Dims FilterDims() const {
    Dims dims = groups > 1 ? Dims{groups, outputs / groups, inputs / groups}
                           : Dims{outputs, inputs};
    dims.insert(dims.end(), taps.begin(), taps.end());
    return dims;
  }

  // The filter as it lies in memory: [spatial..., channels in of a group, channels out].
  memory::desc Filter() const {
    const int64_t lead = groups > 1 ? 1 : 0;
    const Dims dims = FilterDims();
    Dims strides(dims.size());
    if (lead) strides[0] = outputs / groups;
    strides[lead] = 1;
    strides[lead + 1] = outputs;
    int64_t step = outputs * dims[lead + 1];
    for (int64_t d = dims.size() - 1; d >= lead + 2; --d) {
      strides[d] = step;
      step *= dims[d];
    }
    return {dims, type, strides};
  }

  // As the library likes it best.
  memory::desc AnyFilter() const { return {FilterDims(), type, memory::format_tag::any}; }
};

}  // namespace

Prepared PrepareConvolution(const int64_t* numbers) {
  const Geometry g(numbers);
  const auto x = ChannelsLast(g.batch, g.inputs, g.in, g.type);
  const auto y = ChannelsLast(g.batch, g.outputs, g.out, g.type);
  const auto any = g.AnyFilter();
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      Cpu(), dnnl::prop_kind::forward_training, algorithm, x, any, y, g.strides, g.dilations,
      g.before, g.after, Attributes());
  if (g.pass == Pass::kForward) {
    Prepared made({x, g.Filter()}, y);
    const size_t filter = made.Wanted(1, forward.weights_desc());
    made.Add<decltype(forward), dnnl::convolution_forward>(
        forward, {{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, filter}, {DNNL_ARG_DST, made.result()}});
    return made;
  }
  if (g.pass == Pass::kInput) {
    const dnnl::convolution_backward_data::primitive_desc found(
        Cpu(), algorithm, x, any, y, g.strides, g.dilations, g.before, g.after, forward,
        Attributes());
    Prepared made({g.Filter(), y}, x);
    const size_t filter = made.Wanted(0, found.weights_desc());
    made.Add<decltype(found), dnnl::convolution_backward_data>(
        found,
        {{DNNL_ARG_WEIGHTS, filter}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_SRC, made.result()}});
    return made;
  }
  const dnnl::convolution_backward_weights::primitive_desc found(
      Cpu(), algorithm, x, any, y, g.strides, g.dilations, g.before, g.after, forward,
      Attributes());
  Prepared made({x, y}, g.Filter());
  const auto wanted = found.diff_weights_desc();
  const size_t filter = wanted == g.Filter() ? made.result() : made.Scratch(wanted);
  made.Add<decltype(found), dnnl::convolution_backward_weights>(
      found, {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_WEIGHTS, filter}});
  made.Give(filter);
  return made;
}

}  // namespace headrace
