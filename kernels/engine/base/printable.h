// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Text of unknown origin (file names, values from files, replies of servers) as
// UTF-8 that a message can carry. TensorFlow 1.15's Python ends the process if
// the message of an error is not UTF-8.

#ifndef KERNELS_ENGINE_BASE_PRINTABLE_H_
#define KERNELS_ENGINE_BASE_PRINTABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace ev {

// Decodes the UTF-8 character that begins at text[at] and returns its length in
// bytes, 1 to 4; *code (may be null) is its code point. Returns 0 if the bytes
// are not UTF-8: overlong forms, surrogates and code points above U+10FFFF are
// not. REQUIRES: at < text.size().
size_t Utf8CharacterAt(const std::string& text, size_t at, uint32_t* code);

// Returns the text with each byte that is not UTF-8, and each control character
// except tab and line feed, as \xNN. Other characters stay. A text that was
// returned is returned unchanged.
std::string PrintableUtf8(const std::string& text);

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_PRINTABLE_H_
