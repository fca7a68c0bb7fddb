/* The memory of region_report as bytes, for a file between two starts of an app. C99, integers only.
 *
 *   #include "region_memory.h"                                       includes sample_region.c
 *
 *   region_memory_pack(&region, &memory, bytes);                     region_memory_size(&memory) bytes
 *   region_memory_unpack(&region, &memory, bytes, size);             before the first report; REGION_STALE if altered
 *
 * memory.remember, visit, room and kept are set before either call. Bytes of another map, mode or radius are refused: their
 * reports have another claim. Write the file before a report is released, and replace it by a rename. The bytes name
 * places where somebody was: they must stay on the device. Numbers are little-endian:
 *
 *     0  10 bytes "mechregion", uint16: version 1, uint32: remember, visit, count, last
 *    28  the SHA-256 at the end of region.map, 32 bytes
 *    60  for each report two uint64, the position, and uint32, the report
 *   end  SHA-256 of all bytes before it, 32 bytes
 *
 * The checksum detects corruption, not tampering.
 */
#ifndef REGION_MEMORY_H
#define REGION_MEMORY_H

#include "sample_region.c"

enum { REGION_STALE = REGION_FULL + 1, REGION_MEMORY_HEAD = 60, REGION_MEMORY_EACH = 20 };

static size_t region_memory_size(const struct region_memory *memory) {
  return REGION_MEMORY_HEAD + (size_t)REGION_MEMORY_EACH * memory->count + REGION_SEAL;
}

static unsigned char *region_put(unsigned char *bytes, uint64_t number, int count) {
  for (; count > 0; count--, number >>= 8) *bytes++ = (unsigned char)(number & 0xff);
  return bytes;
}

static void region_memory_pack(const struct region *region, const struct region_memory *memory, unsigned char *bytes) {
  const unsigned char *seal = region->weight + (size_t)region->rows * region->columns;
  static const char magic[] = "mechregion\1";
  unsigned char *at = bytes;
  uint32_t k;
  for (k = 0; k < sizeof magic; k++) *at++ = (unsigned char)magic[k];
  at = region_put(at, memory->remember, 4), at = region_put(at, memory->visit, 4);
  at = region_put(at, memory->count, 4), at = region_put(at, memory->last, 4);
  for (k = 0; k < REGION_SEAL; k++) *at++ = seal[k];
  for (k = 0; k < memory->count; k++) {
    at = region_put(at, memory->kept[k].at[0], 8), at = region_put(at, memory->kept[k].at[1], 8);
    at = region_put(at, memory->kept[k].report, 4);
  }
  region_sha256(bytes, (size_t)(at - bytes), at);
}

static int region_memory_unpack(const struct region *region, struct region_memory *memory, const unsigned char *bytes,
                                size_t size) {
  unsigned char head[REGION_MEMORY_HEAD + REGION_SEAL], seal[REGION_SEAL];
  struct region_memory empty = *memory;
  uint32_t count, last, k;
  int axis;
  if (size < sizeof head) return REGION_STALE;
  count = (uint32_t)region_number(bytes + 20, 4), last = (uint32_t)region_number(bytes + 24, 4);
  if (count > memory->room) return REGION_FULL;
  empty.count = count, empty.last = last;
  if (size != region_memory_size(&empty) || (last >= count && last != REGION_NONE_YET)) return REGION_STALE;
  region_sha256(bytes, size - REGION_SEAL, seal);
  for (k = 0; k < REGION_SEAL; k++)
    if (seal[k] != bytes[size - REGION_SEAL + k]) return REGION_STALE;
  /* The head that this map, mode and radius have. */
  empty.count = 0;
  region_memory_pack(region, &empty, head);
  for (k = 0; k < REGION_MEMORY_HEAD; k++)
    if ((k < 20 || k >= 28) && head[k] != bytes[k]) return REGION_STALE;
  for (k = 0; k < count; k++) {
    struct region_kept kept;
    const unsigned char *from = bytes + REGION_MEMORY_HEAD + (size_t)REGION_MEMORY_EACH * k;
    for (axis = 0; axis < 2; axis++) {
      kept.at[axis] = region_number(from + 8 * axis, 8);
      if (kept.at[axis] >> 16 >= region->cells[axis]) return REGION_STALE;
    }
    kept.report = (uint32_t)region_number(from + 16, 4);
    if (kept.report >= region->cells[0] * region->cells[1]) return REGION_STALE;
    memory->kept[k] = kept;
  }
  memory->count = count, memory->last = last;
  return REGION_GOOD;
}

#endif
