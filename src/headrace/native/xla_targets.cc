// What XLA calls, by its foreign function interface, and what Python asks through ctypes.

#include <cstdint>
#include <string>

#include "convolution.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

ffi::Error ConvolveBuffers(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> first,
                           ffi::Buffer<ffi::F32> second, ffi::ResultBuffer<ffi::F32> result,
                           ffi::Span<const int64_t> geometry) {
  if (geometry.size() != headrace::kLengthOfGeometry) {
    return ffi::Error::InvalidArgument("geometry of another length");
  }
  std::string error;
  if (!headrace::Convolve(geometry.begin(), static_cast<int>(pool.num_threads()),
                          first.typed_data(), second.typed_data(), result->typed_data(), &error)) {
    return ffi::Error::Internal(error);
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(HeadraceConvolution, ConvolveBuffers,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Attr<ffi::Span<const int64_t>>("geometry"));

extern "C" {

// The version of oneDNN, major * 1000 + minor; 0 on a CPU without AVX2, and -1 where it is not the
// version that this was compiled for.
int headrace_native_version() {
  if (dnnl::version()->major != DNNL_VERSION_MAJOR ||
      dnnl::version()->minor != DNNL_VERSION_MINOR) {
    return -1;
  }
  const auto isa = dnnl::get_effective_cpu_isa();
  const bool enough = isa != dnnl::cpu_isa::isa_default && isa != dnnl::cpu_isa::sse41 &&
                      isa != dnnl::cpu_isa::avx;
  return enough ? dnnl::version()->major * 1000 + dnnl::version()->minor : 0;
}

int headrace_native_has_fast_convolution(const int64_t* geometry, int threads) {
  return headrace::HasFastConvolution(geometry, threads) ? 1 : 0;
}

int64_t headrace_native_count_of_primitives() {
  return static_cast<int64_t>(headrace::CountOfPrimitives());
}
}
