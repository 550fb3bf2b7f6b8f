// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Takes the members of a JSON object one by one, notes what is wrong with them,
// and at the end what is left over.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_OBJECT_READER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_OBJECT_READER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/config/json.h"

namespace hps {

// Errors and notes of a whole file, in their order.
struct Findings {
  std::vector<std::string> errors, notes;
};

class ObjectReader {
 public:
  // path: "models[0]", or "" for the whole. A json that is no object is an
  // error, and then has no members.
  ObjectReader(const Json& json, const std::string& path, Findings* findings);

  // Each leaves *value as it is when there is no such member. false: there is
  // none, or it is wrong.
  bool Bool(const char* key, bool* value);
  bool Integer(const char* key, int64_t least, int64_t most, int64_t* value);
  // As Integer; a number above any int64 is the largest one.
  bool IntegerOrHuge(const char* key, int64_t least, int64_t* value);
  bool Number(const char* key, double least, double most, double* value);
  bool String(const char* key, std::string* value);
  bool Strings(const char* key, std::vector<std::string>* value);
  bool Integers(const char* key, int64_t least, int64_t most,
                std::vector<int64_t>* value);
  bool Numbers(const char* key, std::vector<double>* value);
  // One of the names, each followed by its other spellings. *value is the first
  // of the line that fits.
  bool Choice(const char* key,
              const std::vector<std::vector<std::string>>& names,
              std::string* value);
  const Json* Object(const char* key);
  const Json* Array(const char* key);

  // The key may stand there; a note says what it does not do.
  void Ignore(const char* key, const std::string& why);
  bool Has(const char* key) const { return json_.Find(key) != nullptr; }

  // "models[0].gpucacheper".
  std::string PathOf(const std::string& key) const;
  void Wrong(const std::string& key, const std::string& what);
  void Note(const std::string& key, const std::string& what);

  // Members that were not asked for are errors; names the key that was meant.
  void Finish();

 private:
  const Json* Take(const char* key);
  const Json* TakeKind(const char* key, Json::Kind kind, const char* want);

  const Json& json_;
  const std::string path_;
  Findings* const findings_;
  std::set<std::string> asked_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_OBJECT_READER_H_
