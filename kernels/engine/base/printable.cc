// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/printable.h"

namespace ev {
namespace {

bool IsControl(uint32_t code) {
  return (code < 0x20 && code != '\t' && code != '\n') || code == 0x7F;
}

void AppendEscaped(unsigned char byte, std::string* text) {
  const char digits[] = "0123456789abcdef";
  *text += "\\x";
  *text += digits[byte >> 4];
  *text += digits[byte & 15];
}

}  // namespace

size_t Utf8CharacterAt(const std::string& text, size_t at, uint32_t* code) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const uint32_t first = byte(at);
  size_t length = 1;
  uint32_t value = first, least = 0;
  if (first >= 0x80) {
    if (first >= 0xC0 && first < 0xE0) {
      length = 2, value = first & 0x1F, least = 0x80;
    } else if (first >= 0xE0 && first < 0xF0) {
      length = 3, value = first & 0x0F, least = 0x800;
    } else if (first >= 0xF0 && first < 0xF8) {
      length = 4, value = first & 0x07, least = 0x10000;
    } else {
      return 0;
    }
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(at + i) & 0x3F);
  }
  const bool is_surrogate = value >= 0xD800 && value < 0xE000;
  if (value < least || value > 0x10FFFF || is_surrogate) return 0;
  if (code != nullptr) *code = value;
  return length;
}

std::string PrintableUtf8(const std::string& text) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = Utf8CharacterAt(text, at, &code);
    if (length == 0 || IsControl(code)) {
      AppendEscaped(static_cast<unsigned char>(text[at]), &printable);
      ++at;
    } else {
      printable.append(text, at, length);
      at += length;
    }
  }
  return printable;
}

}  // namespace ev
