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

  // Starts words[0], searched in PATH. Its output goes to the file `log`.
  bool Start(const std::vector<std::string>& words, const std::string& log);
  // Runs the function in a fork of this process; its result is the exit status.
  // REQUIRES: no other thread of this process holds a lock that the function
  // needs.
  bool Fork(const std::function<int()>& run);
  // Sends SIGKILL and waits for the end.
  void Kill();
  // Sends SIGSTOP: the process exists, but does not respond.
  void Stop();
  void Continue();
  bool IsRunning();
  // Waits for the end; returns -1 unless it exited normally.
  int Wait();

 private:
  pid_t pid_ = -1;
};

// Returns whether PATH has the program.
bool HasProgram(const std::string& name);

// A new folder with a short path, removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns a port that is free now, as is the port 10,000 above it.
int FreePort();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_CHILD_PROCESS_H_
