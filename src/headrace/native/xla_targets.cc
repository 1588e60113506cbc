// What XLA calls, by its foreign function interface, and what Python asks through ctypes.

#include <cstdint>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"
#include "operations.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

template <const headrace::Operation& operation>
ffi::Error RunOnBuffers(ffi::ThreadPool pool, ffi::RemainingArgs operands,
                        ffi::Result<ffi::AnyBuffer> result, ffi::Span<const int64_t> numbers,
                        int64_t threads) {
  if (numbers.size() != operation.length) {
    return ffi::Error::InvalidArgument(std::string("a case of ") + operation.name + " has " +
                                       std::to_string(operation.length) + " numbers, not " +
                                       std::to_string(numbers.size()));
  }
  std::vector<headrace::Buffer> given;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto operand = operands.get<ffi::AnyBuffer>(i);
    if (operand.has_error()) return operand.error();
    given.push_back({operand->untyped_data(), operand->size_bytes()});
  }
  const int count = threads > 0 ? static_cast<int>(threads) : static_cast<int>(pool.num_threads());
  std::string error;
  if (!headrace::Run(operation, numbers.begin(), count, given,
                     {result->untyped_data(), result->size_bytes()}, &error)) {
    return ffi::Error::Internal(error);
  }
  return ffi::Error::Success();
}

const headrace::Operation* OperationAt(int64_t number) {
  static const headrace::Operation* const all[] = {&headrace::kConvolution, &headrace::kProduct,
                                                   &headrace::kPool};
  return all[number];
}

}  // namespace

#define HEADRACE_TARGET(Name, operation)                                         \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(Name, RunOnBuffers<operation>,                   \
                                ffi::Ffi::Bind()                                 \
                                    .Ctx<ffi::ThreadPool>()                      \
                                    .RemainingArgs()                             \
                                    .Ret<ffi::AnyBuffer>()                       \
                                    .Attr<ffi::Span<const int64_t>>("numbers")   \
                                    .Attr<int64_t>("threads"))

HEADRACE_TARGET(HeadraceConvolution, headrace::kConvolution);
HEADRACE_TARGET(HeadraceProduct, headrace::kProduct);
HEADRACE_TARGET(HeadracePool, headrace::kPool);

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

// Operations are numbered as `loading.py` lists them.
int headrace_native_is_fast(int64_t operation, const int64_t* numbers, int threads) {
  return headrace::IsFast(*OperationAt(operation), numbers, threads) ? 1 : 0;
}

int64_t headrace_native_count_of_prepared() {
  return static_cast<int64_t>(headrace::CountOfPrepared());
}
}
