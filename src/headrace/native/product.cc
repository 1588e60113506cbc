#include "prepared.h"

namespace headrace {

Prepared PrepareProduct(const int64_t* numbers) {
  using dnnl::memory;
  const auto type = TypeOf(numbers[0]);
  const int64_t stack = numbers[1], rows = numbers[2], terms = numbers[3], columns = numbers[4];
  const auto matrix = [&](int64_t m, int64_t n, bool across) {
    const int64_t row = across ? 1 : n, column = across ? m : 1;
    return stack == 1 ? memory::desc({m, n}, type, Dims{row, column})
                      : memory::desc({stack, m, n}, type, Dims{m * n, row, column});
  };
  const auto a = matrix(rows, terms, numbers[5] != 0);
  const auto b = matrix(terms, columns, numbers[6] != 0);
  const auto c = matrix(rows, columns, false);
  const dnnl::matmul::primitive_desc found(Cpu(), a, b, c, Attributes());
  Prepared made({a, b}, c);
  made.Add<decltype(found), dnnl::matmul>(
      found, {{DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, made.result()}});
  return made;
}

}  // namespace headrace
