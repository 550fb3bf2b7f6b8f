// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/printable.h"

#include <string>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(PrintableTest, Utf8StaysAsItIs) {
  for (const std::string text :
       {"", "a\tb\nc", "\xC2\x80", "\xC3\xA9", "\xEF\xBC\x8C", "\xED\x9F\xBF",
        "\xEE\x80\x80", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(PrintableUtf8(text), text);
  }
}

TEST(PrintableTest, OtherBytesAreEscapedOneByOne) {
  const struct {
    std::string text, printable;
  } cases[] = {
      {"\xFF", "\\xff"},
      {"caf\xE9.json", "caf\\xe9.json"},
      {"\xEF\xBC", "\\xef\\xbc"},           // truncated
      {"\xEF\xBCx", "\\xef\\xbcx"},         // truncated by a character
      {"\xBC", "\\xbc"},                    // without a first byte
      {"\xC0\x80", "\\xc0\\x80"},           // overlong
      {"\xE0\x9F\xBF", "\\xe0\\x9f\\xbf"},  // overlong
      {"\xF0\x8F\xBF\xBF", "\\xf0\\x8f\\xbf\\xbf"},
      {"\xED\xA0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
      {std::string("a\0b", 3), "a\\x00b"},
      {"\x1B[31m\r\x7F", "\\x1b[31m\\x0d\\x7f"},
      {"\xFF\xEF\xBC\x8C\xFE", "\\xff\xEF\xBC\x8C\\xfe"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(PrintableUtf8(one.text), one.printable);
    EXPECT_EQ(PrintableUtf8(one.printable), one.printable);
  }
}

TEST(PrintableTest, ReadsCodePoints) {
  const std::string text = "a\xC3\xA9\xEF\xBC\x8C\xF0\x9F\x98\x80";
  uint32_t code = 0;
  EXPECT_EQ(Utf8CharacterAt(text, 0, &code), 1u);
  EXPECT_EQ(code, static_cast<uint32_t>('a'));
  EXPECT_EQ(Utf8CharacterAt(text, 1, &code), 2u);
  EXPECT_EQ(code, 0xE9u);
  EXPECT_EQ(Utf8CharacterAt(text, 3, &code), 3u);
  EXPECT_EQ(code, 0xFF0Cu);
  EXPECT_EQ(Utf8CharacterAt(text, 6, &code), 4u);
  EXPECT_EQ(code, 0x1F600u);
  EXPECT_EQ(Utf8CharacterAt(text, 2, nullptr), 0u);
}

}  // namespace
}  // namespace ev
