// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/row_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace ev {
namespace {

// Bytes of unpacked rows that one task writes.
constexpr int64_t kTaskBytes = 128 << 10;

// The bits of the largest float16 that is at most x. REQUIRES: x is finite.
uint16_t Float16Below(float x) {
  uint16_t bits = ToFloat16(x);
  if (FromFloat16(bits) <= x) return bits;
  if (bits == 0) return 0x8001;  // the largest negative number
  return bits & 0x8000 ? bits + 1 : bits - 1;
}

// The bits of the smallest float16 that is at least x. REQUIRES: x >= 0.
uint16_t Float16Above(float x) {
  const uint16_t bits = ToFloat16(x);
  return FromFloat16(bits) >= x ? bits : bits + 1;
}

bool IsFinite16(uint16_t bits) { return (bits & 0x7C00) != 0x7C00; }

bool PackFloat16(const float* row, int dim, uint16_t* stored) {
  bool is_finite = true;
  for (int j = 0; j < dim; ++j) {
    stored[j] = ToFloat16(row[j]);
    is_finite &= IsFinite16(stored[j]);
  }
  return is_finite;
}

bool PackUint8(const float* row, int dim, uint8_t* stored, uint16_t* end) {
  float least = row[0], most = row[0];
  bool is_finite = true;
  for (int j = 0; j < dim; ++j) {
    is_finite &= std::isfinite(row[j]);
    least = std::min(least, row[j]);
    most = std::max(most, row[j]);
  }
  if (!is_finite) return false;
  end[1] = Float16Below(least);
  if (!IsFinite16(end[1])) return false;
  // In double, whose quotient is not below the scale that reaches `most`.
  const double offset = FromFloat16(end[1]);
  end[0] = Float16Above(static_cast<float>((most - offset) / 255));
  if (!IsFinite16(end[0])) return false;
  const double scale = FromFloat16(end[0]);
  for (int j = 0; j < dim; ++j) {
    const double q = scale == 0 ? 0 : std::nearbyint((row[j] - offset) / scale);
    stored[j] = static_cast<uint8_t>(std::min(q, 255.0));
  }
  return true;
}

}  // namespace

const char* RowTypeName(RowType type) {
  switch (type) {
    case RowType::kFloat16:
      return "float16";
    case RowType::kUint8:
      return "uint8";
    default:
      return "float32";
  }
}

bool ParseRowType(const std::string& name, RowType* type) {
  for (const RowType each :
       {RowType::kFloat32, RowType::kFloat16, RowType::kUint8}) {
    if (name != RowTypeName(each)) continue;
    *type = each;
    return true;
  }
  return false;
}

std::string Describe(const RowFormat& format) {
  return std::to_string(format.dim) +
         (format.is_packed()
              ? std::string(" numbers of type ") + RowTypeName(format.type)
              : " floats");
}

std::string FormatText(const RowFormat& format) {
  std::string text = std::to_string(format.width());
  if (format.is_packed()) {
    text += std::string(" ") + RowTypeName(format.type) + " " +
            std::to_string(format.dim);
  }
  return text;
}

bool ParseFormatText(const std::string& text, RowFormat* format) {
  int width = 0, dim = 0;
  char type[16] = "";
  const int count = std::sscanf(text.c_str(), "%d %15s %d", &width, type, &dim);
  if (count == 1) *format = RowFormat(width);
  if (count == 3) {
    format->dim = dim;
    if (!ParseRowType(type, &format->type)) return false;
  }
  return (count == 1 || count == 3) && format->dim > 0 &&
         format->width() == width;
}

Status PackRows(const RowFormat& format, Span<const int64_t> keys,
                const float* rows, float* stored) {
  const int64_t width = format.width();
  const size_t bytes = width * sizeof(float);
  if (!format.is_packed()) {
    std::memcpy(stored, rows, keys.size() * bytes);
    return Status::OK();
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const float* const row = rows + i * format.dim;
    char* const to = reinterpret_cast<char*>(stored + i * width);
    std::memset(to, 0, bytes);
    const bool is_stored =
        format.type == RowType::kFloat16
            ? PackFloat16(row, format.dim, reinterpret_cast<uint16_t*>(to))
            : PackUint8(row, format.dim, reinterpret_cast<uint8_t*>(to),
                        reinterpret_cast<uint16_t*>(to + bytes - 4));
    if (is_stored) continue;
    return InvalidArgument(
        "key " + std::to_string(keys[i]) +
        ": expected a row of finite numbers that the type " +
        RowTypeName(format.type) +
        " can store (65504 is the largest float16), got " +
        std::to_string(*std::min_element(row, row + format.dim)) + " to " +
        std::to_string(*std::max_element(row, row + format.dim)) +
        " or a number that is not finite");
  }
  return Status::OK();
}

void UnpackRow(const RowFormat& format, const float* stored, float* row) {
  const int dim = format.dim;
  if (format.type == RowType::kFloat32) {
    std::memcpy(row, stored, dim * sizeof(float));
  } else if (format.type == RowType::kFloat16) {
    for (int j = 0; j < dim; ++j) row[j] = UnpackedFloat16(stored, j);
  } else {
    const uint8_t* const q = reinterpret_cast<const uint8_t*>(stored);
    const float* const end = stored + format.width() - 1;
    const float scale = UnpackedFloat16(end, 0);
    const float offset = UnpackedFloat16(end, 1);
    for (int j = 0; j < dim; ++j) row[j] = UnpackedUint8(q[j], scale, offset);
  }
}

void UnpackRows(const RowFormat& format, int64_t count, const float* stored,
                float* rows, Parallel* parallel) {
  const int64_t dim = format.dim, width = format.width();
  const int64_t at_once = std::max<int64_t>(1, kTaskBytes / (4 * dim));
  parallel->For((count + at_once - 1) / at_once, [&](int64_t task) {
    const int64_t end = std::min(count, (task + 1) * at_once);
    for (int64_t i = task * at_once; i < end; ++i) {
      UnpackRow(format, stored + i * width, rows + i * dim);
    }
  });
}

Status PackFileRows(const RowFormat& format, Span<const int64_t> keys,
                    const float* rows, char* stored) {
  std::vector<float> words(format.width());
  const char* const row = reinterpret_cast<const char*>(words.data());
  const int64_t bytes = FileRowBytes(format);
  // Bytes after the zeros.
  const int64_t end = format.type == RowType::kUint8 ? 4 : 0;
  for (size_t i = 0; i < keys.size(); ++i, stored += bytes) {
    EV_RETURN_IF_ERROR(PackRows(format, keys.subspan(i, 1),
                                rows + i * format.dim, words.data()));
    std::memcpy(stored, row, bytes - end);
    std::memcpy(stored + bytes - end, row + words.size() * sizeof(float) - end,
                end);
  }
  return Status::OK();
}

void UnpackFileRows(const RowFormat& format, int64_t count, const char* stored,
                    float* rows) {
  std::vector<float> words(format.width());
  char* const row = reinterpret_cast<char*>(words.data());
  const int64_t bytes = FileRowBytes(format);
  const int64_t end = format.type == RowType::kUint8 ? 4 : 0;
  for (int64_t i = 0; i < count; ++i, stored += bytes) {
    std::memcpy(row, stored, bytes - end);
    std::memcpy(row + words.size() * sizeof(float) - end, stored + bytes - end,
                end);
    UnpackRow(format, words.data(), rows + i * format.dim);
  }
}

}  // namespace ev
