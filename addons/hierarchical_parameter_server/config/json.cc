// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/config/json.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <sstream>

#include "kernels/engine/base/printable.h"

namespace hps {
namespace {

constexpr int kMaxDepth = 64;
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

// Characters that resemble JSON's punctuation or a blank. Invisible ones are
// not printed.
struct Lookalike {
  uint32_t code;
  bool is_visible;
  const char* name;
};
constexpr Lookalike kLookalikes[] = {
    {0x00A0, false, "a no-break space"},
    {0x00AB, true, "a typographic quote"},
    {0x00BB, true, "a typographic quote"},
    {0x200B, false, "a zero-width space"},
    {0x2013, true, "a dash"},
    {0x2014, true, "a dash"},
    {0x2018, true, "a typographic quote"},
    {0x2019, true, "a typographic quote"},
    {0x201C, true, "a typographic quote"},
    {0x201D, true, "a typographic quote"},
    {0x201E, true, "a typographic quote"},
    {0x2028, false, "a line separator"},
    {0x2212, true, "a minus sign"},
    {0x3000, false, "an ideographic space"},
    {0x3001, true, "an ideographic comma"},
    {0xFEFF, false, "a byte-order mark"},
    {0xFF02, true, "a full-width quote"},
    {0xFF0C, true, "a full-width comma"},
    {0xFF1A, true, "a full-width colon"},
    {0xFF3B, true, "a full-width bracket"},
    {0xFF3D, true, "a full-width bracket"},
    {0xFF5B, true, "a full-width brace"},
    {0xFF5D, true, "a full-width brace"},
};

// Returns, for example, "'\uFF0C' (U+FF0C, a full-width comma)" or "'x'".
std::string CharacterAt(const std::string& text, size_t at) {
  uint32_t code = 0;
  const size_t length = ev::Utf8CharacterAt(text, at, &code);
  const std::string shown =
      ev::PrintableUtf8(text.substr(at, length == 0 ? 1 : length));
  if (length == 0) {
    return "the byte " + shown +
           ", which is not UTF-8; save the file in the encoding UTF-8";
  }
  if (code < 0x80) return "'" + shown + "'";
  char buffer[16];
  std::snprintf(buffer, sizeof(buffer), "U+%04X", static_cast<unsigned>(code));
  const std::string number = buffer;
  for (const Lookalike& one : kLookalikes) {
    if (one.code != code) continue;
    return one.is_visible ? "'" + shown + "' (" + number + ", " + one.name + ")"
                          : number + ", " + one.name;
  }
  return "'" + shown + "' (" + number + ")";
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& where)
      : text_(text), where_(where) {
    if (text.compare(0, 3, kByteOrderMark) == 0) at_ = begin_ = 3;
  }

  ev::Status Document(Json* json) {
    EV_RETURN_IF_ERROR(Value(json, 0));
    EV_RETURN_IF_ERROR(Space());
    if (at_ < text_.size()) return Wrong("expected the end, got " + Shown());
    return ev::Status::OK();
  }

 private:
  ev::Status Wrong(const std::string& what) const {
    int line = 1, column = 1;
    for (size_t i = begin_; i < at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      } else if ((text_[i] & 0xC0) != 0x80) {  // first byte of a character
        ++column;
      }
    }
    return ev::InvalidArgument(where_ + ", line " + std::to_string(line) +
                               ", column " + std::to_string(column) + ": " +
                               what);
  }
  bool More() const { return at_ < text_.size(); }
  char Peek() const { return More() ? text_[at_] : '\0'; }
  std::string Shown() const {
    return More() ? CharacterAt(text_, at_) : "the end of the text";
  }
  bool Take(const char* word) {
    const std::string expected = word;
    if (text_.compare(at_, expected.size(), expected) != 0) return false;
    at_ += expected.size();
    return true;
  }

  // Skips blanks, line ends and comments.
  ev::Status Space() {
    for (;;) {
      while (More() && (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' ||
                        Peek() == '\r')) {
        ++at_;
      }
      if (Take("//")) {
        while (More() && Peek() != '\n') ++at_;
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string::npos) return Wrong("an unterminated comment");
        at_ = end + 2;
      } else {
        return ev::Status::OK();
      }
    }
  }

  ev::Status Value(Json* json, int depth) {
    EV_RETURN_IF_ERROR(Space());
    if (depth > kMaxDepth) return Wrong("nested more than 64 deep");
    if (Peek() == '{') return Object(json, depth);
    if (Peek() == '[') return Array(json, depth);
    if (Peek() == '"') {
      json->kind = Json::Kind::kString;
      return String(&json->text);
    }
    if (Take("true")) return Flag(json, true);
    if (Take("false")) return Flag(json, false);
    if (Take("null")) return ev::Status::OK();
    return Number(json);
  }

  ev::Status Flag(Json* json, bool value) {
    json->kind = Json::Kind::kBool;
    json->flag = value;
    return ev::Status::OK();
  }

  ev::Status Number(Json* json) {
    const size_t begin = at_;
    const auto digits = [this] {
      const size_t from = at_;
      while (Peek() >= '0' && Peek() <= '9') ++at_;
      return at_ - from;
    };
    if (Peek() == '-') ++at_;
    const size_t first = at_;
    if (digits() == 0) {
      at_ = begin;
      return Wrong("expected a value, got " + Shown());
    }
    if (text_[first] == '0' && at_ - first > 1) {
      at_ = begin;
      return Wrong("a number that begins with 0");
    }
    bool integer = true;
    if (Peek() == '.') {
      integer = false;
      ++at_;
      if (digits() == 0) return Wrong("expected digits after the point");
    }
    if (Peek() == 'e' || Peek() == 'E') {
      integer = false;
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (digits() == 0) return Wrong("expected digits of the exponent");
    }
    const std::string digits_text = text_.substr(begin, at_ - begin);
    json->kind = Json::Kind::kNumber;
    json->text = digits_text;
    // Uses the classic locale: in the process's locale the decimal point may be
    // a comma.
    std::istringstream stream(digits_text);
    stream.imbue(std::locale::classic());
    stream >> json->number;
    if (!integer) return ev::Status::OK();
    errno = 0;
    json->integer = std::strtoll(digits_text.c_str(), nullptr, 10);
    json->is_integer = errno != ERANGE;
    json->is_huge = errno == ERANGE && digits_text[0] != '-';
    return ev::Status::OK();
  }

  ev::Status Hex(unsigned* value) {
    *value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = Peek();
      unsigned digit = 0;
      if (c >= '0' && c <= '9') {
        digit = c - '0';
      } else if (c >= 'a' && c <= 'f') {
        digit = c - 'a' + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = c - 'A' + 10;
      } else {
        return Wrong("expected four hexadecimal digits after \\u");
      }
      *value = *value * 16 + digit;
    }
    return ev::Status::OK();
  }

  static void AppendUtf8(unsigned code, std::string* text) {
    if (code < 0x80) {
      text->push_back(static_cast<char>(code));
    } else if (code < 0x800) {
      text->push_back(static_cast<char>(0xC0 | code >> 6));
      text->push_back(static_cast<char>(0x80 | (code & 0x3F)));
    } else if (code < 0x10000) {
      text->push_back(static_cast<char>(0xE0 | code >> 12));
      text->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
      text->push_back(static_cast<char>(0x80 | (code & 0x3F)));
    } else {
      text->push_back(static_cast<char>(0xF0 | code >> 18));
      text->push_back(static_cast<char>(0x80 | (code >> 12 & 0x3F)));
      text->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3F)));
      text->push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
  }

  ev::Status String(std::string* text) {
    ++at_;  // opening quote
    for (;;) {
      if (!More()) return Wrong("an unterminated string");
      const char c = Peek();
      if (static_cast<unsigned char>(c) < 0x20) {
        return Wrong("a string with a control character or line end");
      }
      ++at_;
      if (c == '"') return ev::Status::OK();
      if (c != '\\') {
        text->push_back(c);
        continue;
      }
      const char escaped = Peek();
      ++at_;
      const std::string from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
      const size_t known = from.find(escaped);
      if (escaped == 'u') {
        unsigned code = 0;
        EV_RETURN_IF_ERROR(Hex(&code));
        if (code >= 0xD800 && code < 0xDC00) {
          unsigned low = 0;
          if (!Take("\\u"))
            return Wrong("expected the second half of a surrogate pair");
          EV_RETURN_IF_ERROR(Hex(&low));
          if (low < 0xDC00 || low > 0xDFFF) {
            return Wrong("expected the second half of a surrogate pair");
          }
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xDC00 && code <= 0xDFFF) {
          return Wrong("the second half of a surrogate pair without the first");
        }
        AppendUtf8(code, text);
      } else if (escaped != '\0' && known != std::string::npos) {
        text->push_back(to[known]);
      } else {
        return Wrong("an unknown escape in a string");
      }
    }
  }

  ev::Status Array(Json* json, int depth) {
    json->kind = Json::Kind::kArray;
    ++at_;
    for (;;) {
      EV_RETURN_IF_ERROR(Space());
      if (Take("]")) return ev::Status::OK();
      json->items.emplace_back();
      EV_RETURN_IF_ERROR(Value(&json->items.back(), depth + 1));
      EV_RETURN_IF_ERROR(Space());
      if (Take(",")) continue;
      if (!Take("]")) return Wrong("expected ',' or ']', got " + Shown());
      return ev::Status::OK();
    }
  }

  ev::Status Object(Json* json, int depth) {
    json->kind = Json::Kind::kObject;
    ++at_;
    for (;;) {
      EV_RETURN_IF_ERROR(Space());
      if (Take("}")) return ev::Status::OK();
      if (Peek() != '"')
        return Wrong("expected a key in quotes, got " + Shown());
      std::string key;
      EV_RETURN_IF_ERROR(String(&key));
      if (json->Find(key) != nullptr) {
        return Wrong("the key '" + key + "' occurs twice");
      }
      EV_RETURN_IF_ERROR(Space());
      if (!Take(":")) return Wrong("expected ':', got " + Shown());
      json->members.emplace_back(key, Json());
      EV_RETURN_IF_ERROR(Value(&json->members.back().second, depth + 1));
      EV_RETURN_IF_ERROR(Space());
      if (Take(",")) continue;
      if (!Take("}")) return Wrong("expected ',' or '}', got " + Shown());
      return ev::Status::OK();
    }
  }

  const std::string& text_;
  const std::string& where_;
  size_t begin_ = 0;  // after a byte-order mark
  size_t at_ = 0;
};

}  // namespace

std::string Json::Describe() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return flag ? "true" : "false";
    case Kind::kNumber:
      return text;
    case Kind::kString:
      return Quoted(text);
    case Kind::kArray:
      return "a list of " + std::to_string(items.size());
    case Kind::kObject:
      return "an object";
  }
  return "";
}

ev::Status ParseJson(const std::string& text, const std::string& where,
                     Json* json) {
  *json = Json();
  return Reader(text, where).Document(json);
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : ev::PrintableUtf8(text)) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      quoted += buffer;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace hps
