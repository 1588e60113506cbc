// The thread that makes all calls of oneDNN.
#pragma once

#include <functional>

namespace headrace {

// Runs work on `threads` threads of the library's team (0: as many as OpenMP has), or, where it is
// one, in the calling thread. What work throws is thrown here.
void OnTeam(int threads, const std::function<void()>& work);

}  // namespace headrace
