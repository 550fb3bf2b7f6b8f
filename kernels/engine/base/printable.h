// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Turns text of unknown origin (file names, values from files, replies of
// servers) into UTF-8 for messages. TensorFlow 1.15's Python aborts the process
// if an error message is not UTF-8.

#ifndef KERNELS_ENGINE_BASE_PRINTABLE_H_
#define KERNELS_ENGINE_BASE_PRINTABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace ev {

// Decodes the UTF-8 character that begins at text[at] and returns its length in
// bytes, 1 to 4. Sets *code (may be null) to its code point. Returns 0 if the
// bytes are not UTF-8, which includes overlong forms, surrogates and code
// points above U+10FFFF. REQUIRES: at < text.size().
size_t Utf8CharacterAt(const std::string& text, size_t at, uint32_t* code);

// Returns the text with each byte that is not UTF-8, and each control character
// except tab and line feed, replaced by \xNN. Idempotent.
std::string PrintableUtf8(const std::string& text);

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_PRINTABLE_H_
