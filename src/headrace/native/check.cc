// The operations beside plain loops, with sanitizers: see tests/native/test_native_build.py.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "operations.h"

namespace {

using Floats = std::vector<float>;

Floats Random(size_t count) {
  static std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  Floats made(count);
  for (float& value : made) value = normal(generator);
  return made;
}

headrace::Buffer Of(const Floats& values) {
  return {values.data(), values.size() * sizeof(float)};
}

// Whether an operation gives what is wanted; every element must be written.
bool Gives(const headrace::Operation& operation, const std::vector<int64_t>& numbers, int threads,
           const std::vector<const Floats*>& operands, const Floats& want) {
  Floats got(want.size(), NAN);
  std::vector<headrace::Buffer> given;
  for (const Floats* operand : operands) given.push_back(Of(*operand));
  std::string error;
  if (!headrace::Run(operation, numbers.data(), threads, given, Of(got), &error)) {
    std::printf("%s\n", error.c_str());
    return false;
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::fabs(got[i] - want[i]) <= 1e-3f * (1 + std::fabs(want[i])))) {
      std::printf("%s, element %zu: %g, not %g\n", operation.name, i, got[i], want[i]);
      return false;
    }
  }
  return true;
}

// --- convolutions ----------------------------------------------------------------------------

struct Layer {
  int64_t batch, groups, inputs, outputs, size, taps, stride, dilation, before, after;
  int64_t out() const {
    return (size + before + after - (taps - 1) * dilation - 1) / stride + 1;
  }
  std::vector<int64_t> Numbers(int64_t pass) const {
    std::vector<int64_t> n{0, pass, 2, batch, groups, inputs, outputs};
    for (int64_t value : {size, taps, out(), stride, dilation, before, after}) {
      n.insert(n.end(), {value, value, 0});
    }
    return n;
  }
};

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

bool CheckConvolution(const Layer& l, int threads) {
  const int64_t o = l.out();
  const Floats x = Random(l.batch * l.size * l.size * l.inputs);
  const Floats w = Random(l.taps * l.taps * l.inputs / l.groups * l.outputs);
  const Floats dy = Random(l.batch * o * o * l.outputs);
  Floats y(dy.size()), dx(x.size()), dw(w.size());
  ForEach(l, [&](int64_t ix, int64_t iw, int64_t iy) {
    y[iy] += x[ix] * w[iw];
    dx[ix] += w[iw] * dy[iy];
    dw[iw] += x[ix] * dy[iy];
  });
  const auto& operation = headrace::kConvolution;
  return Gives(operation, l.Numbers(0), threads, {&x, &w}, y) &&
         Gives(operation, l.Numbers(1), threads, {&w, &dy}, dx) &&
         Gives(operation, l.Numbers(2), threads, {&x, &dy}, dw);
}

bool CheckConvolutions() {
  const Layer layers[] = {
      {2, 1, 16, 32, 9, 3, 1, 1, 1, 1}, {1, 1, 3, 16, 13, 5, 2, 1, 1, 2},
      {2, 1, 5, 7, 11, 4, 3, 1, 0, 2},  {1, 1, 16, 16, 10, 3, 1, 2, 2, 2},
      {3, 1, 8, 8, 6, 1, 1, 1, 0, 0},   {2, 16, 16, 16, 8, 3, 2, 1, 0, 1},
      {1, 2, 32, 32, 7, 3, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
  };
  bool good = true;
  for (const Layer& layer : layers) {
    for (int threads : {1, 2}) good = CheckConvolution(layer, threads) && good;
  }
  return good;
}

// Several threads of XLA call at once.
bool CheckCallers() {
  const Layer l{2, 1, 16, 32, 9, 3, 1, 1, 1, 1};
  std::vector<std::thread> callers;
  bool each[4] = {};
  for (bool& good : each) {
    callers.emplace_back([&l, &good] {
      const Floats x(l.batch * l.size * l.size * l.inputs, 1.0f);
      const Floats w(l.taps * l.taps * l.inputs * l.outputs, 1.0f);
      Floats y(l.batch * l.out() * l.out() * l.outputs, NAN);
      std::string error;
      const auto numbers = l.Numbers(0);
      for (int time = 0; time < 20; ++time) {
        headrace::Run(headrace::kConvolution, numbers.data(), 2, {Of(x), Of(w)}, Of(y), &error);
      }
      good = y[(l.out() + 1) * l.outputs] == 9.0f * l.inputs;  // no edge
    });
  }
  for (auto& caller : callers) caller.join();
  return std::all_of(std::begin(each), std::end(each), [](bool good) { return good; });
}

// --- products --------------------------------------------------------------------------------

bool CheckProduct(int64_t stack, int64_t rows, int64_t terms, int64_t columns) {
  const Floats a = Random(stack * rows * terms), b = Random(stack * terms * columns);
  bool good = true;
  for (int across = 0; across < 4; ++across) {
    const int64_t first = across & 1, second = across >> 1;
    Floats want(stack * rows * columns);
    for (int64_t s = 0; s < stack; ++s)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t k = 0; k < terms; ++k)
            want[(s * rows + i) * columns + j] +=
                a[s * rows * terms + (first ? k * rows + i : i * terms + k)] *
                b[s * terms * columns + (second ? j * terms + k : k * columns + j)];
    for (int threads : {1, 2}) {
      good = Gives(headrace::kProduct, {0, stack, rows, terms, columns, first, second}, threads,
                   {&a, &b}, want) &&
             good;
    }
  }
  return good;
}

// --- pools -----------------------------------------------------------------------------------

bool CheckPool(int64_t size, int64_t window, int64_t stride, int64_t before, int64_t after) {
  const int64_t batch = 2, channels = 19, o = (size + before + after - window) / stride + 1;
  const Floats x = Random(batch * size * size * channels);
  const Floats dy = Random(batch * o * o * channels);
  Floats most(dy.size()), mean(dy.size()), of_most(x.size()), of_mean(x.size());
  for (int64_t y = 0; y < static_cast<int64_t>(dy.size()); ++y) {
    const int64_t c = y % channels, w = y / channels % o, h = y / channels / o % o;
    const int64_t n = y / channels / o / o;
    std::vector<int64_t> places;
    for (int64_t i = 0; i < window * window; ++i) {
      const int64_t row = h * stride - before + i / window;
      const int64_t column = w * stride - before + i % window;
      if (row < 0 || column < 0 || row >= size || column >= size) continue;
      places.push_back(((n * size + row) * size + column) * channels + c);
    }
    const auto first = *std::max_element(places.begin(), places.end(),
                                         [&](int64_t p, int64_t q) { return x[p] < x[q]; });
    most[y] = x[first];
    of_most[first] += dy[y];
    for (int64_t place : places) {
      mean[y] += x[place] / places.size();
      of_mean[place] += dy[y] / places.size();
    }
  }
  bool good = true;
  for (int64_t part = 0; part < 4; ++part) {
    std::vector<int64_t> numbers{0, part, 2, batch, channels};
    for (int64_t value : {size, window, o, stride, before, after}) {
      numbers.insert(numbers.end(), {value, value, 0});
    }
    std::vector<const Floats*> operands;
    if (part != 3) operands.push_back(&x);
    if (part >= 2) operands.push_back(&dy);
    const Floats* want[] = {&most, &mean, &of_most, &of_mean};
    good = Gives(headrace::kPool, numbers, 2, operands, *want[part]) && good;
  }
  return good;
}

// --- what the library refuses is an error, not an abort --------------------------------------

bool Refuses(std::vector<int64_t> numbers, size_t bytes) {
  std::string error;
  Floats some(bytes / sizeof(float));
  return !headrace::Run(headrace::kConvolution, numbers.data(), 1, {Of(some), Of(some)}, Of(some),
                        &error) &&
         error.rfind("oneDNN, convolution: ", 0) == 0;
}

bool CheckRefusals() {
  const Layer layer{2, 1, 16, 32, 9, 3, 1, 1, 1, 1};
  auto impossible = layer.Numbers(0), unknown = layer.Numbers(0);
  impossible[7] = 3;  // an input that is smaller than the output
  unknown[0] = 9;     // a type of elements
  return Refuses(impossible, 64) && Refuses(unknown, 64) && Refuses(layer.Numbers(0), 64) &&
         !headrace::IsFast(headrace::kConvolution, impossible.data(), 1) &&
         headrace::IsFast(headrace::kConvolution, layer.Numbers(0).data(), 1);
}

}  // namespace

int main() {
  bool good = CheckConvolutions();
  good = CheckCallers() && good;
  good = CheckProduct(1, 17, 33, 20) && CheckProduct(5, 8, 7, 9) && CheckProduct(1, 1, 1, 1) && good;
  good = CheckPool(9, 3, 2, 1, 1) && CheckPool(8, 2, 2, 0, 0) && CheckPool(11, 3, 1, 1, 1) && good;
  good = CheckRefusals() && good;
  std::printf("%s, %zu prepared\n", good ? "good" : "bad", headrace::CountOfPrepared());
  return good ? 0 : 1;
}
