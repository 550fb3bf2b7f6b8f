// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/config/object_reader.h"

#include <algorithm>
#include <limits>
#include <sstream>

namespace hps {
namespace {

std::string Shown(double number) {
  std::ostringstream stream;
  stream << number;
  return stream.str();
}

// Edit distance: insertions, deletions and replacements between two words.
int Distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int corner = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min(
          {above + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row[b.size()];
}

}  // namespace

ObjectReader::ObjectReader(const Json& json, const std::string& path,
                           Findings* findings)
    : json_(json), path_(path), findings_(findings) {
  if (json.kind != Json::Kind::kObject) {
    findings_->errors.push_back((path.empty() ? "the file" : path) +
                                ": expected an object in {}, got " +
                                json.Describe());
  }
}

std::string ObjectReader::PathOf(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void ObjectReader::Wrong(const std::string& key, const std::string& what) {
  findings_->errors.push_back(PathOf(key) + ": " + what);
}

void ObjectReader::Note(const std::string& key, const std::string& what) {
  findings_->notes.push_back(PathOf(key) + ": " + what);
}

const Json* ObjectReader::Take(const char* key) {
  asked_.insert(key);
  return json_.Find(key);
}

const Json* ObjectReader::TakeKind(const char* key, Json::Kind kind,
                                   const char* expected) {
  const Json* const json = Take(key);
  if (json == nullptr || json->kind == kind) return json;
  Wrong(key, std::string("expected ") + expected + ", got " + json->Describe());
  return nullptr;
}

bool ObjectReader::Bool(const char* key, bool* value) {
  const Json* const json = TakeKind(key, Json::Kind::kBool, "true or false");
  if (json == nullptr) return false;
  *value = json->flag;
  return true;
}

bool ObjectReader::Integer(const char* key, int64_t least, int64_t most,
                           int64_t* value) {
  const Json* const json = TakeKind(key, Json::Kind::kNumber, "an integer");
  if (json == nullptr) return false;
  if (!json->is_integer || json->integer < least || json->integer > most) {
    Wrong(key, "expected an integer from " + std::to_string(least) + " to " +
                   std::to_string(most) + ", got " + json->Describe());
    return false;
  }
  *value = json->integer;
  return true;
}

bool ObjectReader::IntegerOrHuge(const char* key, int64_t least,
                                 int64_t* value) {
  const Json* const json = Take(key);
  if (json != nullptr && json->is_huge) {
    *value = std::numeric_limits<int64_t>::max();
    return true;
  }
  return Integer(key, least, std::numeric_limits<int64_t>::max(), value);
}

bool ObjectReader::Number(const char* key, double least, double most,
                          double* value) {
  const Json* const json = TakeKind(key, Json::Kind::kNumber, "a number");
  if (json == nullptr) return false;
  if (!(json->number >= least && json->number <= most)) {
    Wrong(key, "expected a number from " + Shown(least) + " to " + Shown(most) +
                   ", got " + json->Describe());
    return false;
  }
  *value = json->number;
  return true;
}

bool ObjectReader::String(const char* key, std::string* value) {
  const Json* const json = TakeKind(key, Json::Kind::kString, "a string");
  if (json == nullptr) return false;
  *value = json->text;
  return true;
}

bool ObjectReader::Strings(const char* key, std::vector<std::string>* value) {
  const Json* const json = Array(key);
  if (json == nullptr) return false;
  std::vector<std::string> found;
  for (size_t i = 0; i < json->items.size(); ++i) {
    if (json->items[i].kind != Json::Kind::kString) {
      Wrong(std::string(key) + "[" + std::to_string(i) + "]",
            "expected a string, got " + json->items[i].Describe());
      return false;
    }
    found.push_back(json->items[i].text);
  }
  *value = found;
  return true;
}

bool ObjectReader::Integers(const char* key, int64_t least, int64_t most,
                            std::vector<int64_t>* value) {
  const Json* const json = Array(key);
  if (json == nullptr) return false;
  std::vector<int64_t> found;
  for (size_t i = 0; i < json->items.size(); ++i) {
    const Json& item = json->items[i];
    if (!item.is_integer || item.integer < least || item.integer > most) {
      Wrong(std::string(key) + "[" + std::to_string(i) + "]",
            "expected an integer from " + std::to_string(least) + " to " +
                std::to_string(most) + ", got " + item.Describe());
      return false;
    }
    found.push_back(item.integer);
  }
  *value = found;
  return true;
}

bool ObjectReader::Numbers(const char* key, std::vector<double>* value) {
  const Json* const json = Array(key);
  if (json == nullptr) return false;
  std::vector<double> found;
  for (size_t i = 0; i < json->items.size(); ++i) {
    if (json->items[i].kind != Json::Kind::kNumber) {
      Wrong(std::string(key) + "[" + std::to_string(i) + "]",
            "expected a number, got " + json->items[i].Describe());
      return false;
    }
    found.push_back(json->items[i].number);
  }
  *value = found;
  return true;
}

bool ObjectReader::Choice(const char* key,
                          const std::vector<std::vector<std::string>>& names,
                          std::string* value) {
  std::string given;
  if (!String(key, &given)) return false;
  std::string all;
  for (const auto& spellings : names) {
    if (std::find(spellings.begin(), spellings.end(), given) !=
        spellings.end()) {
      *value = spellings[0];
      return true;
    }
    all += (all.empty() ? "" : ", ") + Quoted(spellings[0]);
  }
  Wrong(key, "expected one of " + all + ", got " + Quoted(given));
  return false;
}

const Json* ObjectReader::Object(const char* key) {
  return TakeKind(key, Json::Kind::kObject, "an object in {}");
}

const Json* ObjectReader::Array(const char* key) {
  return TakeKind(key, Json::Kind::kArray, "a list in []");
}

void ObjectReader::Ignore(const char* key, const std::string& why) {
  if (Take(key) != nullptr) Note(key, why);
}

void ObjectReader::Finish() {
  for (const auto& member : json_.members) {
    if (asked_.count(member.first) > 0) continue;
    std::string meant;
    int least = 4;  // a key this far away is not suggested
    for (const std::string& key : asked_) {
      const int distance = Distance(key, member.first);
      if (distance < least) {
        least = distance;
        meant = key;
      }
    }
    Wrong(member.first, meant.empty()
                            ? "unknown key"
                            : "unknown key; was '" + meant + "' meant?");
  }
}

}  // namespace hps
