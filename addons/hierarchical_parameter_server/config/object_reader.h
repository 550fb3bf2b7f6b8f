// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads the members of a JSON object one by one and collects errors: wrong
// values, and members that were never read.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_OBJECT_READER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_OBJECT_READER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/config/json.h"

namespace hps {

// Errors and notes of one file, in order.
struct Findings {
  std::vector<std::string> errors, notes;
};

class ObjectReader {
 public:
  // path: for example "models[0]"; "" for the whole file. If `json` is not an
  // object, the constructor reports an error, and no member is found.
  ObjectReader(const Json& json, const std::string& path, Findings* findings);

  // Each reads one member into *value. Returns false, and leaves *value
  // unchanged, if the member is missing or wrong.
  bool Bool(const char* key, bool* value);
  bool Integer(const char* key, int64_t least, int64_t most, int64_t* value);
  // Like Integer; larger numbers become the largest int64.
  bool IntegerOrHuge(const char* key, int64_t least, int64_t* value);
  bool Number(const char* key, double least, double most, double* value);
  bool String(const char* key, std::string* value);
  bool Strings(const char* key, std::vector<std::string>* value);
  bool Integers(const char* key, int64_t least, int64_t most,
                std::vector<int64_t>* value);
  bool Numbers(const char* key, std::vector<double>* value);
  // Reads one of several choices. Each list in `names` has a choice and its
  // other spellings; *value is the first of the list that matches.
  bool Choice(const char* key,
              const std::vector<std::vector<std::string>>& names,
              std::string* value);
  const Json* Object(const char* key);
  const Json* Array(const char* key);

  // Accepts the key and adds a note that it has no effect.
  void Ignore(const char* key, const std::string& why);
  bool Has(const char* key) const { return json_.Find(key) != nullptr; }

  // Full path, such as "models[0].gpucacheper".
  std::string PathOf(const std::string& key) const;
  void Wrong(const std::string& key, const std::string& what);
  void Note(const std::string& key, const std::string& what);

  // Reports the members that were never read as errors and suggests the likely
  // key.
  void Finish();

 private:
  const Json* Take(const char* key);
  const Json* TakeKind(const char* key, Json::Kind kind, const char* expected);

  const Json& json_;
  const std::string path_;
  Findings* const findings_;
  std::set<std::string> asked_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_OBJECT_READER_H_
