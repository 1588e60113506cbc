// The convolutions beside plain loops, with sanitizers: see tests/native/test_native_build.py.

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "convolution.h"

namespace {

struct Layer {
  int64_t batch, groups, inputs, outputs, size, taps, stride, dilation, before, after;
  int64_t out() const {
    return (size + before + after - (taps - 1) * dilation - 1) / stride + 1;
  }
  std::vector<int64_t> Geometry(int64_t pass) const {
    std::vector<int64_t> g{pass, 2, batch, groups, inputs, outputs};
    for (int64_t value : {size, taps, out(), stride, dilation, before, after}) {
      g.insert(g.end(), {value, value, 0});
    }
    return g;
  }
};

std::vector<float> Random(size_t count) {
  static std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> made(count);
  for (float& value : made) value = normal(generator);
  return made;
}

// Calls `meet(x, w, y)` with the places in memory of all that are multiplied with each other.
template <typename Meet>
void ForEach(const Layer& l, Meet meet) {
  const int64_t o = l.out(), ci = l.inputs / l.groups, co = l.outputs / l.groups;
  for (int64_t n = 0; n < l.batch; ++n)
    for (int64_t yh = 0; yh < o; ++yh)
      for (int64_t yw = 0; yw < o; ++yw)
        for (int64_t kh = 0; kh < l.taps; ++kh)
          for (int64_t kw = 0; kw < l.taps; ++kw) {
            const int64_t xh = yh * l.stride - l.before + kh * l.dilation;
            const int64_t xw = yw * l.stride - l.before + kw * l.dilation;
            if (xh < 0 || xw < 0 || xh >= l.size || xw >= l.size) continue;
            for (int64_t c = 0; c < l.outputs; ++c)
              for (int64_t i = 0; i < ci; ++i)
                meet(((n * l.size + xh) * l.size + xw) * l.inputs + c / co * ci + i,
                     ((kh * l.taps + kw) * ci + i) * l.outputs + c,
                     ((n * o + yh) * o + yw) * l.outputs + c);
          }
}

bool Check(const Layer& l, int threads) {
  const int64_t o = l.out();
  const auto x = Random(l.batch * l.size * l.size * l.inputs);
  const auto w = Random(l.taps * l.taps * l.inputs / l.groups * l.outputs);
  const auto dy = Random(l.batch * o * o * l.outputs);
  std::vector<float> want[] = {std::vector<float>(dy.size()), std::vector<float>(x.size()),
                               std::vector<float>(w.size())};
  ForEach(l, [&](int64_t ix, int64_t iw, int64_t iy) {
    want[0][iy] += x[ix] * w[iw];
    want[1][ix] += w[iw] * dy[iy];
    want[2][iw] += x[ix] * dy[iy];
  });
  const float* operands[][2] = {
      {x.data(), w.data()}, {w.data(), dy.data()}, {x.data(), dy.data()}};
  for (int64_t pass = 0; pass < 3; ++pass) {
    std::vector<float> got(want[pass].size(), NAN);  // every element must be written
    std::string error;
    if (!headrace::Convolve(l.Geometry(pass).data(), threads, operands[pass][0],
                            operands[pass][1], got.data(), &error)) {
      std::printf("pass %d: %s\n", static_cast<int>(pass), error.c_str());
      return false;
    }
    for (size_t i = 0; i < got.size(); ++i) {
      if (!(std::fabs(got[i] - want[pass][i]) <= 1e-3f * (1 + std::fabs(want[pass][i])))) {
        std::printf("pass %d, element %zu: %g, not %g\n", static_cast<int>(pass), i, got[i],
                    want[pass][i]);
        return false;
      }
    }
  }
  return true;
}

}  // namespace

int main() {
  const Layer layers[] = {
      {2, 1, 16, 32, 9, 3, 1, 1, 1, 1}, {1, 1, 3, 16, 13, 5, 2, 1, 1, 2},
      {2, 1, 5, 7, 11, 4, 3, 1, 0, 2},  {1, 1, 16, 16, 10, 3, 1, 2, 2, 2},
      {3, 1, 8, 8, 6, 1, 1, 1, 0, 0},   {2, 16, 16, 16, 8, 3, 2, 1, 0, 1},
      {1, 2, 32, 32, 7, 3, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
  };
  bool good = true;
  for (const Layer& layer : layers) {
    for (int threads : {1, 2}) good = Check(layer, threads) && good;
  }
  // Several threads of XLA call at once.
  std::vector<std::thread> callers;
  bool each[4] = {};
  std::vector<Layer> same(4, layers[0]);
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      const Layer& l = same[i];
      const std::vector<float> x(l.batch * l.size * l.size * l.inputs, 1.0f);
      const std::vector<float> w(l.taps * l.taps * l.inputs * l.outputs, 1.0f);
      std::vector<float> y(l.batch * l.out() * l.out() * l.outputs, NAN);
      std::string error;
      for (int time = 0; time < 20; ++time) {
        headrace::Convolve(l.Geometry(0).data(), 2, x.data(), w.data(), y.data(), &error);
      }
      each[i] = y[(l.out() + 1) * l.outputs] == 9.0f * l.inputs;  // no edge
    });
  }
  for (auto& caller : callers) caller.join();
  for (bool one : each) good = one && good;
  // What the library refuses is an error, not an abort.
  std::string error;
  auto wrong = layers[0].Geometry(0);
  wrong[6] = 3;
  good = !headrace::Convolve(wrong.data(), 1, nullptr, nullptr, nullptr, &error) &&
         error.rfind("oneDNN: ", 0) == 0 && good;
  good = !headrace::HasFastConvolution(wrong.data(), 1) && good;
  std::printf("%s, %zu prepared\n", good ? "good" : "bad", headrace::CountOfPrimitives());
  return good ? 0 : 1;
}
