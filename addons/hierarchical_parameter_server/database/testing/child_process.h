// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A program that a test starts and kills; it never outlives the test.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_CHILD_PROCESS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace hps {

class ChildProcess {
 public:
  ChildProcess() {}
  ~ChildProcess() { Kill(); }
  ChildProcess(const ChildProcess&) = delete;

  // words[0] is looked for in PATH. What the program prints goes to the file
  // `log`.
  bool Start(const std::vector<std::string>& words, const std::string& log);
  // Runs the function in a fork of this process; its result is the exit status.
  // REQUIRES: no other thread of this process holds a lock that it needs.
  bool Fork(const std::function<int()>& run);
  // SIGKILL, and waits for the end.
  void Kill();
  // SIGSTOP: it is there and does nothing.
  void Stop();
  void Continue();
  bool IsRunning();
  // Waits for the end; -1 unless it exited by itself.
  int Wait();

 private:
  pid_t pid_ = -1;
};

// Whether PATH has the program.
bool HasProgram(const std::string& name);

// A fresh folder with a short path, removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A port that is free now, and so is the one that is 10,000 above.
int FreePort();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_CHILD_PROCESS_H_
