/* Draw reports from the device map of a region, in C99 and integers only, in this one file.
 *
 *   #include "sample_region.c"
 *
 *   static unsigned char map[] = ...;                      the bytes of region.map
 *   size_t room;
 *   region_room(map, sizeof map, &room);                   bytes of working memory that this map needs
 *   uint64_t *arena = malloc(room);                        or a static array
 *   struct region region;
 *   region_open(&region, map, sizeof map, arena, room);    checks the map, its SHA-256 included
 *   uint32_t report;
 *   region_draw(&region, cell, random_bytes, 0, &report);  one report of a cell
 *
 * Every function returns REGION_GOOD or an error code; region_message(code) names the fault and the remedy. The map
 * must stay in memory; an arena serves one draw at a time. random_bytes(context, bytes, count) fills `bytes` from a
 * cryptographic generator and returns 0.
 *
 * The map, numbers little-endian, R = n1 + 2 margin and C = n2 + 2 margin:
 *
 *     0  10 bytes "mechdesign", uint16: version 1, uint32: h
 *    16  h bytes, which begin with {"kind": "device"
 *  then  uint64: n1, n2, margin, stencil (8 or 16), cap, shift, g, k, grain, ratio, five length scales (the last two 0 with
 *        stencil 8)
 *  then  level (R C), uint16; potential (R C), int16 as two's complement; weight (R C), uint8; rows one after the other
 *   end  SHA-256 of all bytes before it, 32 bytes
 *
 * Cell c of n1 n2 is place (c div n2 + margin, c mod n2 + margin) of R x C; the report of a place in the margin is the
 * nearest cell. Neighbours, edge lengths, weights W, kernel E and the bound of S, the claim and its proof are in
 * mechdesign/devicemap/device_map.py. The order of places and the use of random bytes are in draw.py of that folder.
 * Equal bytes give equal reports here, in JavaScript and in Python: Dijkstra's method settles places in the order of
 * (distance, number). Each takes (E(q) - E(cap)) W of the integers below S; then every place takes E(cap) W of them, in
 * the order of numbers.                                                                                            (1)
 *
 * A phone that rests must not be reported anew at every fix. region_report remembers.
 *
 *   struct region_kept kept[500];
 *   struct region_memory memory = {REGION_REMEMBER_CELL, 0, 500, 0, REGION_NONE_YET, kept};
 *   uint64_t at[2] = {...};                                position from the first corner of the map, in 2^-16 of a cell.
 *   region_report(&region, &memory, at, random_bytes, 0, &report, &remembered);
 *
 * REGION_REMEMBER_CELL draws one report for each cell. REGION_REMEMBER_VISIT draws one for each visit, for the cell of its
 * first position. It repeats the report within `visit`, and up to 1.5 times as far until the visit is left. Cells are
 * squares here. `visit` is in 2^-16 of a cell, at most 2^30. REGION_REMEMBER_NONE draws at every call.
 * web/device/rest.mjs has the claim of each mode. For two traces with the same pattern of repetitions and k draws it is
 * the sum of k distances.
 * The app keeps `memory` and `kept` between its starts; region_memory.h packs them into bytes. They name places, so they
 * must stay on the device.
 *
 * A report costs the claim once. The time of a draw reveals how far the report lies from the cell: release the report
 * at a fixed time after the request, one that hardly any draw exceeds. The cell and every intermediate
 * number must stay on the device. Memory: the map, and
 *
 *     10 R C + 8 (cap + 1) + 8 R bytes, each part rounded up to a multiple of 8.
 *
 * A program: cc -std=c99 -O2 -DREGION_MAIN sample_region.c -o sample_region; ./sample_region region.map CELL [COUNT]
 */
#ifndef REGION_SAMPLER
#define REGION_SAMPLER

#include <stddef.h>
#include <stdint.h>

enum region_code {
  REGION_GOOD,
  REGION_SHORT,
  REGION_OTHER,
  REGION_PLACES,
  REGION_LENGTHS,
  REGION_KERNEL,
  REGION_BOUND,
  REGION_LEVEL,
  REGION_SIZE,
  REGION_ALTERED,
  REGION_ARENA,
  REGION_CELL,
  REGION_RANDOM,
  REGION_LOOSE,
  REGION_MODE,
  REGION_FULL
};

enum region_remember { REGION_REMEMBER_CELL, REGION_REMEMBER_VISIT, REGION_REMEMBER_NONE };

#define REGION_NONE_YET 0xffffffffu

struct region_kept {
  uint64_t at[2];
  uint32_t report;
};

struct region_memory {
  enum region_remember remember;
  uint32_t visit, room, count, last; /* last: the visit of the last report in `kept` */
  struct region_kept *kept;
};

typedef int (*region_random)(void *context, unsigned char *bytes, size_t count);

struct region {
  uint32_t rows, columns, cells[2], margin, cap;
  const unsigned char *numbers, *level, *potential, *weight;
  struct region_edge {
    int32_t down, right;
    uint32_t at[6], times[3];
    uint64_t scale;
  } edge[8];
  uint32_t edges;
  uint64_t grain, *kernel, *above, bound[256];
  uint32_t bound_shift, *heap, *slot, waiting, settled;
  uint16_t *distance;
};

const char *region_message(int code) {
  static const char *const words[] = {
      "good",
      "map: ends too early; pass all bytes of region.map, and their number",
      "map: not a region.map of version 1; write it again: `mechdesign export FILE -o FOLDER`",
      "map: n1 and n2 must be at least 2, with at most 2^24 places in all; use an unaltered file",
      "map: stencil, grain or a length scale is out of range; use an unaltered file",
      "map: cap, shift or ratio is out of range; use an unaltered file",
      "map: g or k is out of range; use an unaltered file",
      "map: a place has level 0; use an unaltered file",
      "map: its size does not match its numbers; pass all bytes of region.map",
      "map: checksum mismatch; use an unaltered file",
      "arena: too small, or not aligned to 8 bytes; pass as many bytes as region_room returns",
      "cell: not in the map; pass an integer below n1 n2",
      "random_bytes: failed, so nothing was drawn; report nothing",
      "map: a row bound exceeds 4 times the row sum; use a map that `mechdesign verify` certifies",
      "memory: unknown mode, or a visit of 0 or above 2^30; use REGION_REMEMBER_CELL, _VISIT or _NONE",
      "memory: full, so nothing was drawn; report nothing, or pass a longer array"};
  return code >= 0 && code <= REGION_FULL ? words[code] : "unknown error code; pass the result of a function of this file";
}

/* Integers below 2^128. */
struct region_wide {
  uint64_t high, low;
};

/* By halves of 32 bits. A product of two and one half more is at most (2^32 - 1)^2 + 2^32 - 1 < 2^64: neither `middle`
 * nor `other` wraps. */
static struct region_wide region_product(uint64_t a, uint64_t b) {
  const uint64_t half = 0xffffffffu;
  uint64_t low = (a & half) * (b & half), middle = (a >> 32) * (b & half) + (low >> 32);
  uint64_t other = (a & half) * (b >> 32) + (middle & half);
  struct region_wide product;
  product.high = (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
  product.low = (other << 32) | (low & half);
  return product;
}

static int region_is_below(struct region_wide a, struct region_wide b) {
  return a.high < b.high || (a.high == b.high && a.low < b.low);
}

/* a - b for a >= b, with the borrow of the low words. */
static struct region_wide region_difference(struct region_wide a, struct region_wide b) {
  struct region_wide rest;
  rest.high = a.high - b.high - (a.low < b.low);
  rest.low = a.low - b.low;
  return rest;
}

/* No carry leaves the high words: sums here are at most 4 S < 2^120. */
static struct region_wide region_sum(struct region_wide a, struct region_wide b) {
  struct region_wide sum;
  sum.low = a.low + b.low;
  sum.high = a.high + b.high + (sum.low < a.low);
  return sum;
}

/* Shifts by 64 or more are undefined in C, hence the cases. by is at most 64. */
static struct region_wide region_shift_left(uint64_t a, uint32_t by) {
  struct region_wide moved;
  moved.high = by == 0 ? 0 : by < 64 ? a >> (64 - by) : a;
  moved.low = by < 64 ? a << by : 0;
  return moved;
}

static uint64_t region_number(const unsigned char *bytes, int count) {
  uint64_t number = 0;
  while (count-- > 0) number = number << 8 | bytes[count];
  return number;
}

/* SHA-256, FIPS 180-4. */
static void region_block(uint32_t *hash, const unsigned char *bytes) {
  static const uint32_t constant[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  uint32_t word[64], v[8];
  int t;
  for (t = 0; t < 16; t++) {
    word[t] = (uint32_t)bytes[4 * t] << 24 | (uint32_t)bytes[4 * t + 1] << 16;
    word[t] |= (uint32_t)bytes[4 * t + 2] << 8 | bytes[4 * t + 3];
  }
#define REGION_TURN(x, n) ((x) >> (n) | (x) << (32 - (n)))
  for (; t < 64; t++) {
    uint32_t a = word[t - 15], b = word[t - 2];
    word[t] = word[t - 16] + word[t - 7] + (REGION_TURN(a, 7) ^ REGION_TURN(a, 18) ^ a >> 3);
    word[t] += REGION_TURN(b, 17) ^ REGION_TURN(b, 19) ^ b >> 10;
  }
  for (t = 0; t < 8; t++) v[t] = hash[t];
  for (t = 0; t < 64; t++) {
    uint32_t e = v[4], a = v[0], one, two;
    one = v[7] + (REGION_TURN(e, 6) ^ REGION_TURN(e, 11) ^ REGION_TURN(e, 25)) + ((e & v[5]) ^ (~e & v[6]));
    one += constant[t] + word[t];
    two = (REGION_TURN(a, 2) ^ REGION_TURN(a, 13) ^ REGION_TURN(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    v[7] = v[6], v[6] = v[5], v[5] = v[4], v[4] = v[3] + one;
    v[3] = v[2], v[2] = v[1], v[1] = v[0], v[0] = one + two;
  }
#undef REGION_TURN
  for (t = 0; t < 8; t++) hash[t] += v[t];
}

static void region_sha256(const unsigned char *bytes, size_t count, unsigned char *digest) {
  uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char tail[128] = {0};
  size_t whole = count / 64 * 64, at, last = count - whole < 56 ? 64 : 128;
  for (at = 0; at < whole; at += 64) region_block(hash, bytes + at);
  for (at = whole; at < count; at++) tail[at - whole] = bytes[at];
  /* Padding: a bit 1, zeros, and the length in bits, most significant byte first, at the end of a block. */
  tail[count - whole] = 0x80;
  for (at = 0; at < 8; at++) tail[last - 1 - at] = (unsigned char)((uint64_t)count * 8 >> 8 * at);
  for (at = 0; at < last; at += 64) region_block(hash, tail + at);
  for (at = 0; at < 32; at++) digest[at] = (unsigned char)(hash[at / 4] >> (24 - 8 * (at % 4)));
}

enum { REGION_BEFORE = 16, REGION_NUMBERS = 120, REGION_SEAL = 32, REGION_MOST_PLACES = 1 << 24 };

static uint64_t region_round_up_8(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

/* The numbers of a map, checked against its size: nothing is read beyond it, whatever the bytes are. */
static int region_read_numbers(struct region *region, const unsigned char *map, size_t size) {
  static const char magic[] = "mechdesign\1", kind[] = "{\"kind\": \"device\"";
  uint64_t rows, columns, number[15];
  size_t room, i;
  if (size < REGION_BEFORE + sizeof kind + REGION_SEAL) return REGION_SHORT;
  for (i = 0; i < sizeof magic; i++)
    if (map[i] != (unsigned char)magic[i]) return REGION_OTHER;
  for (i = 0; i + 1 < sizeof kind; i++)
    if (map[REGION_BEFORE + i] != (unsigned char)kind[i]) return REGION_OTHER;
  room = (size_t)region_number(map + 12, 4);
  /* Compared as size - room: the sum of a length from the file with constants could wrap where size_t has 32 bits. */
  if (room > size || size - room < REGION_BEFORE + REGION_NUMBERS + REGION_SEAL) return REGION_SHORT;
  region->numbers = map + REGION_BEFORE + room;
  for (i = 0; i < 15; i++) number[i] = region_number(region->numbers + 8 * i, 8);
  if (number[0] < 2 || number[0] > REGION_MOST_PLACES || number[1] < 2 || number[1] > REGION_MOST_PLACES)
    return REGION_PLACES;
  if (number[2] > REGION_MOST_PLACES) return REGION_PLACES;
  /* Three numbers of at most 2^24: the sums do not wrap, and the product is formed only once both are at most 2^24. */
  rows = number[0] + 2 * number[2], columns = number[1] + 2 * number[2];
  if (rows > REGION_MOST_PLACES || columns > REGION_MOST_PLACES || rows * columns > REGION_MOST_PLACES)
    return REGION_PLACES;
  /* cap < 65,535, which marks unseen places; 2^61 <= ratio < 2^62, as region_open needs. */
  if (number[4] < 1 || number[4] > 65534 || number[5] > 61 || number[9] >> 61 != 1) return REGION_KERNEL;
  if (number[6] >> 30 != 1 || number[7] > 64) return REGION_BOUND;
  if ((number[3] != 8 && number[3] != 16) || number[8] < 1 || number[8] >> 54 != 0) return REGION_LENGTHS;
  for (i = 0; i < 5; i++) {
    uint64_t scale = number[10 + i];
    if (i < (number[3] == 8 ? 3u : 5u) ? scale < 1 || scale >> 32 != 0 : scale != 0) return REGION_LENGTHS;
  }
  /* Everything below fits 32 bits by the checks above. */
  region->cells[0] = (uint32_t)number[0], region->cells[1] = (uint32_t)number[1];
  region->margin = (uint32_t)number[2];
  region->edges = (uint32_t)number[3] / 2;
  region->cap = (uint32_t)number[4];
  region->bound[0] = number[6];
  region->bound_shift = (uint32_t)number[7];
  region->grain = number[8];
  region->rows = (uint32_t)rows, region->columns = (uint32_t)columns;
  return size - room == REGION_BEFORE + REGION_NUMBERS + 5 * rows * columns + REGION_SEAL ? REGION_GOOD : REGION_SIZE;
}

/* Bytes of working memory that a map needs. */
int region_room(const void *map, size_t size, size_t *room) {
  struct region region;
  int code = region_read_numbers(&region, (const unsigned char *)map, size);
  uint64_t places;
  if (code != REGION_GOOD) return code;
  places = (uint64_t)region.rows * region.columns;
  *room = (size_t)(8 * (region.cap + 1u) + 8 * (uint64_t)region.rows + 2 * region_round_up_8(4 * places));
  *room += (size_t)region_round_up_8(2 * places);
  return REGION_GOOD;
}

static uint64_t region_weight(const struct region *region, uint32_t place) {
  static const uint16_t mantissa[16] = {4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547,
                                        5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845};
  unsigned char b = region->weight[place];
  return (uint64_t)mantissa[b % 16] << b / 16;
}

/* The edges of a place towards (down, right): offsets of the cells whose levels enter the length, and their weights.
 * These are 12, or 8 and 4, or 5, 6 and 1 ("Edges" in device_map.py). */
static void region_edges(struct region *region, const unsigned char *scales) {
  static const int32_t steps[8][2] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}, {2, 1}, {2, -1}, {1, 2}, {1, -2}};
  static const uint32_t scale[8] = {0, 1, 2, 2, 3, 3, 4, 4};
  uint32_t k, c = region->columns;
  for (k = 0; k < region->edges; k++) {
    struct region_edge *edge = &region->edge[k];
    int32_t down = steps[k][0], right = steps[k][1], side = right < 0 ? -1 : 1;
    uint32_t s = (uint32_t)side; /* offsets to the left are added modulo 2^32 */
    int knight = k >= 4, axis = k < 2;
    edge->down = down, edge->right = right;
    edge->at[0] = 0, edge->at[1] = (uint32_t)down * c + (uint32_t)right;
    edge->times[0] = axis ? 12 : knight ? 5 : 8, edge->times[1] = axis ? 0 : knight ? 6 : 4, edge->times[2] = knight;
    edge->at[2] = axis ? 0 : down == 2 || !knight ? c : s;
    edge->at[3] = axis ? 0 : knight ? c + s : s;
    edge->at[4] = !knight ? 0 : down == 2 ? s : c;
    edge->at[5] = !knight ? 0 : down == 2 ? 2 * c : 2 * s;
    edge->scale = region_number(scales + 8 * scale[k], 8);
  }
}

/* Open a region from the bytes of its map, with an arena aligned to 8 bytes. Cost: 0.1 s at a million places. */
int region_open(struct region *region, const void *map, size_t size, void *arena, size_t room) {
  const unsigned char *bytes = (const unsigned char *)map;
  unsigned char digest[32], differs = 0, *free = (unsigned char *)arena;
  size_t needed = 0, places, i;
  uint64_t total = 0, ratio;
  uint32_t t, j, shift;
  int code = region_read_numbers(region, bytes, size);
  if (code == REGION_GOOD) code = region_room(map, size, &needed);
  if (code != REGION_GOOD) return code;
  region_sha256(bytes, size - REGION_SEAL, digest);
  for (i = 0; i < REGION_SEAL; i++) differs |= digest[i] ^ bytes[size - REGION_SEAL + i];
  if (differs) return REGION_ALTERED;
  if (arena == NULL || room < needed || (uintptr_t)arena % 8 != 0) return REGION_ARENA;
  places = (size_t)region->rows * region->columns;
  region->level = region->numbers + REGION_NUMBERS;
  region->potential = region->level + 2 * places;
  region->weight = region->potential + 2 * places;
  region->kernel = (uint64_t *)arena;
  region->above = region->kernel + region->cap + 1;
  free = (unsigned char *)(region->above + region->rows);
  region->heap = (uint32_t *)(void *)free;
  region->slot = (uint32_t *)(void *)(free + region_round_up_8(4 * places));
  region->distance = (uint16_t *)(void *)(free + 2 * region_round_up_8(4 * places));
  region->waiting = region->settled = 0;
  for (i = 0; i < places; i++) {
    if (region_number(region->level + 2 * i, 2) == 0) return REGION_LEVEL;
    region->distance[i] = 0xffff;
  }
  for (i = 0; i < region->rows; i++) {
    for (j = 0; j < region->columns; j++) total += region_weight(region, (uint32_t)(i * region->columns + j));
    region->above[i] = total;
  }
  shift = (uint32_t)region_number(region->numbers + 40, 8);
  ratio = region_number(region->numbers + 72, 8);
  /* E(t + 1) = ceil(E(t) 2^shift / ratio) by long division, a binary digit at a time. E(t) <= 2^58 is below the ratio,
   * the rest stays below it, and it is below 2^62: twice the rest does not wrap. */
  region->kernel[0] = (uint64_t)1 << 58;
  for (t = 0; t < region->cap; t++) {
    uint64_t rest = region->kernel[t], quotient = 0;
    for (j = 0; j < shift; j++) {
      uint64_t less = rest * 2 >= ratio;
      rest = rest * 2 - (less ? ratio : 0);
      quotient = quotient * 2 + less;
    }
    region->kernel[t + 1] = quotient + (rest > 0);
  }
  /* G(254) < 2^31 e^(254/128) < 2^33.87, but for roundings up, and the factor is below 2^30.02: the last product is below
   * 2^63.9. */
  for (t = 0; t < 255; t++) region->bound[t + 1] = (region->bound[t] * 1082163286u + (1u << 30) - 1) >> 30;
  region_edges(region, region->numbers + 80);
  return REGION_GOOD;
}

/* Above and left of the cells the difference wraps to a large number, so that one comparison serves both borders. */
static int region_in_margin(const struct region *region, uint32_t row, uint32_t column) {
  return row - region->margin >= region->cells[0] || column - region->margin >= region->cells[1];
}

/* Units of the edge from place o, the upper one, along edge k. */
static uint64_t region_units(const struct region *region, uint32_t o, const struct region_edge *edge, int in_margin) {
  uint32_t levels = 0, i;
  uint64_t d, c, least, apart;
  for (i = 0; i < 6; i++) {
    size_t at = (uint32_t)(o + edge->at[i]);
    if (edge->times[i / 2]) levels += edge->times[i / 2] * (uint32_t)region_number(region->level + 2 * at, 2);
  }
  c = d = edge->scale * levels; /* A_k m < 2^32 times 2^20.6 */
  if (!in_margin) {
    /* With the sign bit flipped, two's complement compares as unsigned. */
    uint32_t one = (uint32_t)region_number(region->potential + 2 * (size_t)o, 2) ^ 0x8000u;
    size_t end = (uint32_t)(o + edge->at[1]);
    uint32_t two = (uint32_t)region_number(region->potential + 2 * end, 2) ^ 0x8000u;
    /* 2^29 for the rounding of the certificate, 2^33 for a unit of the potential, both in 2^-48 nats: below 2^50. */
    apart = ((uint64_t)1 << 29) + ((uint64_t)(one < two ? two - one : one - two) << 33);
    least = d / 10 * 3 + d % 10 * 3 / 10; /* floor(3 d / 10), as readers in doubles compute it, which cannot hold 3 d */
    /* Unsigned: d - apart is formed only where it does not wrap. */
    c = d > apart && d - apart > least ? d - apart : least;
  }
  c /= region->grain;
  return c < 1 ? 1 : c < region->cap ? c : region->cap;
}

static int region_is_nearer(const struct region *region, uint32_t a, uint32_t b) {
  uint16_t first = region->distance[a], second = region->distance[b];
  return first < second || (first == second && a < b);
}

/* Move a place up the heap from an empty slot until its parent is nearer. */
static void region_sift_up(struct region *region, uint32_t slot, uint32_t place) {
  while (slot > 0 && region_is_nearer(region, place, region->heap[(slot - 1) / 2])) {
    region->heap[slot] = region->heap[(slot - 1) / 2];
    region->slot[region->heap[slot]] = slot;
    slot = (slot - 1) / 2;
  }
  region->heap[slot] = place;
  region->slot[place] = slot;
}

/* Offer a place at a distance. Places at the cap or beyond stay unseen: all of them have the mass E(cap) W. */
static void region_reach(struct region *region, uint32_t place, uint64_t distance) {
  if (distance >= region->cap || distance >= region->distance[place]) return;
  if (region->distance[place] == 0xffff) region->slot[place] = region->waiting++;
  region->distance[place] = (uint16_t)distance;
  region_sift_up(region, region->slot[place], place);
}

/* Take the nearest place out of the heap. Settled places are kept at the end of the same array: together they are at most
 * all places. region_reset reads them there. */
static uint32_t region_take_next(struct region *region) {
  uint32_t first = region->heap[0], last = region->heap[--region->waiting], slot = 0, child;
  while ((child = 2 * slot + 1) < region->waiting) {
    if (child + 1 < region->waiting && region_is_nearer(region, region->heap[child + 1], region->heap[child])) child++;
    if (!region_is_nearer(region, region->heap[child], last)) break;
    region->heap[slot] = region->heap[child];
    region->slot[region->heap[slot]] = slot;
    slot = child;
  }
  if (region->waiting > 0) region->heap[slot] = last, region->slot[last] = slot;
  region->heap[region->rows * region->columns - ++region->settled] = first;
  return first;
}

static void region_reset(struct region *region) {
  uint32_t places = region->rows * region->columns, i;
  for (i = 0; i < region->waiting; i++) region->distance[region->heap[i]] = 0xffff;
  for (i = places - region->settled; i < places; i++) region->distance[region->heap[i]] = 0xffff;
  region->waiting = region->settled = 0;
}

static void region_relax_edges(struct region *region, uint32_t place) {
  uint32_t k, row = place / region->columns, column = place % region->columns;
  int in_margin = region_in_margin(region, row, column);
  for (k = 0; k < region->edges; k++) {
    const struct region_edge *edge = &region->edge[k];
    int side;
    for (side = 0; side < 2; side++) {
      uint32_t i = row + (uint32_t)(side ? -edge->down : edge->down);
      uint32_t j = column + (uint32_t)(side ? -edge->right : edge->right);
      uint32_t other;
      uint64_t units;
      if (i >= region->rows || j >= region->columns) continue; /* also below 0, which wraps */
      other = i * region->columns + j;
      if (region->distance[other] <= region->distance[place]) continue; /* settled, or not shorter: units are at least 1 */
      units = region_units(region, side ? other : place, edge, in_margin || region_in_margin(region, i, j));
      region_reach(region, other, region->distance[place] + units);
    }
  }
}

/* The place to which (1) deals the number t, or the number of places if t >= S; only then sum is S. */
static uint32_t region_place(struct region *region, uint32_t source, struct region_wide t, struct region_wide *sum) {
  uint64_t floor = region->kernel[region->cap], before = 0;
  uint32_t row = 0, place, places = region->rows * region->columns;
  *sum = region_product(floor, region->above[region->rows - 1]);
  region_reach(region, source, 0);
  /* Masses are subtracted from t in turn: t below the next mass belongs to that place, and the search ends there. */
  while (region->waiting > 0) {
    struct region_wide mass;
    place = region_take_next(region);
    mass = region_product(region->kernel[region->distance[place]] - floor, region_weight(region, place));
    if (region_is_below(t, mass)) return place;
    t = region_difference(t, mass);
    *sum = region_sum(*sum, mass);
    region_relax_edges(region, place);
  }
  /* The second part of (1): `above` has the cumulative weights of rows, so that one row alone is summed again. */
  for (; row < region->rows && !region_is_below(t, region_product(floor, region->above[row])); row++) {
    before = region->above[row];
  }
  for (place = row * region->columns; place < places; place++) {
    before += region_weight(region, place);
    if (region_is_below(t, region_product(floor, before))) break;
  }
  return place;
}

/* One report of a cell. Cost: microseconds to milliseconds, which depend on the report. */
int region_draw(struct region *region, uint32_t cell, region_random random_bytes, void *context, uint32_t *report) {
  uint32_t places = region->rows * region->columns, place = places, source, digits, i, j;
  struct region_wide bound, t, sum;
  uint64_t level, rest;
  if (cell >= region->cells[0] * region->cells[1]) return REGION_CELL;
  source = (cell / region->cells[1] + region->margin) * region->columns + cell % region->cells[1] + region->margin;
  /* Sbar: the potential plus 32,768, whose upper byte selects G and whose lower byte the point on the line. Below
   * 2^34 times 2^23, shifted by at most 64. */
  level = region_number(region->potential + 2 * (size_t)source, 2) ^ 0x8000u;
  bound = region_shift_left(region->bound[level / 256] * (((uint64_t)1 << 22) + 129 * (level % 256)), region->bound_shift);
  for (rest = bound.high > 0 ? bound.high : bound.low, digits = bound.high > 0 ? 64 : 0; rest > 0; rest >>= 1) digits++;
  /* Steps 1 to 3 of draw.py: new bytes until t < S. Sbar >= S rejects most others before any place is settled. */
  while (place == places) {
    unsigned char bytes[16];
    uint32_t off = 128 - digits;
    if (random_bytes(context, bytes, sizeof bytes) != 0) return REGION_RANDOM;
    t.low = region_number(bytes, 8), t.high = region_number(bytes + 8, 8);
    /* t = z div 2^off. Sbar has 53 to 121 digits, so 7 <= off <= 75 and no shift below reaches 64. */
    if (off >= 64) t.low = t.high >> (off - 64), t.high = 0;
    else t.low = t.low >> off | t.high << (64 - off), t.high >>= off;
    if (!region_is_below(t, bound)) continue;
    place = region_place(region, source, t, &sum);
    region_reset(region);
    /* 4 S < Sbar: draws from this map might hardly ever end. sum is S where no place was found. */
    sum = region_sum(sum, sum);
    if (place == places && region_is_below(region_sum(sum, sum), bound)) return REGION_LOOSE;
  }
  i = place / region->columns, j = place % region->columns;
  i = i < region->margin ? 0 : i - region->margin < region->cells[0] ? i - region->margin : region->cells[0] - 1;
  j = j < region->margin ? 0 : j - region->margin < region->cells[1] ? j - region->margin : region->cells[1] - 1;
  *report = i * region->cells[1] + j;
  return REGION_GOOD;
}

/* True if a position is within `reach` < 2^31 of a kept one. */
static int region_is_within(const struct region_kept *kept, const uint64_t at[2], uint64_t reach, uint64_t *square) {
  uint64_t away[2];
  int axis;
  for (axis = 0; axis < 2; axis++) {
    away[axis] = at[axis] > kept->at[axis] ? at[axis] - kept->at[axis] : kept->at[axis] - at[axis];
    if (away[axis] > reach) return 0; /* so that squares stay below 2^62 */
  }
  *square = away[0] * away[0] + away[1] * away[1];
  return *square <= reach * reach;
}

/* The kept report of a position, or the count of kept ones. */
static uint32_t region_find(const struct region_memory *memory, const uint64_t at[2]) {
  uint32_t k, found = memory->count;
  uint64_t square, least = ~(uint64_t)0;
  if (memory->remember == REGION_REMEMBER_NONE) return found;
  for (k = 0; k < memory->count; k++) {
    const struct region_kept *kept = &memory->kept[k];
    if (memory->remember == REGION_REMEMBER_CELL) {
      if (kept->at[0] >> 16 == at[0] >> 16 && kept->at[1] >> 16 == at[1] >> 16) return k;
      continue;
    }
    /* A visit that lasts is not exchanged for a nearer place: this would reveal movements within it. */
    if (k == memory->last && region_is_within(kept, at, (uint64_t)memory->visit * 3 / 2, &square)) return k;
    if (k != memory->last && region_is_within(kept, at, memory->visit, &square) && square < least) found = k, least = square;
  }
  return found;
}

/* The report of a position: remembered, or drawn and kept. It pays nothing: the app counts draws, those with remembered 0. */
int region_report(struct region *region, struct region_memory *memory, const uint64_t at[2], region_random random_bytes,
                  void *context, uint32_t *report, int *remembered) {
  uint32_t found;
  int code, keeps = memory->remember != REGION_REMEMBER_NONE, visits = memory->remember == REGION_REMEMBER_VISIT;
  if (memory->remember > REGION_REMEMBER_NONE) return REGION_MODE;
  if (visits && (memory->visit == 0 || memory->visit > (uint32_t)1 << 30)) return REGION_MODE;
  if (at[0] >> 16 >= region->cells[0] || at[1] >> 16 >= region->cells[1]) return REGION_CELL;
  found = region_find(memory, at);
  *remembered = found < memory->count;
  if (*remembered) {
    memory->last = found;
    *report = memory->kept[found].report;
    return REGION_GOOD;
  }
  /* Before the draw: a refusal must not depend on the report. */
  if (keeps && memory->count >= memory->room) return REGION_FULL;
  code = region_draw(region, (uint32_t)((at[0] >> 16) * region->cells[1] + (at[1] >> 16)), random_bytes, context, report);
  if (code != REGION_GOOD || !keeps) return code;
  memory->kept[found].at[0] = at[0], memory->kept[found].at[1] = at[1];
  memory->kept[found].report = *report;
  memory->last = memory->count++;
  return REGION_GOOD;
}

#ifdef REGION_MAIN
#include <stdio.h>
#include <stdlib.h>

static int region_from_file(void *context, unsigned char *bytes, size_t count) {
  return fread(bytes, 1, count, (FILE *)context) == count ? 0 : 1;
}

static unsigned char *region_read(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  size_t room = 1 << 16, got;
  unsigned char *bytes = file == NULL ? NULL : (unsigned char *)malloc(room);
  *size = 0;
  while (bytes != NULL && (got = fread(bytes + *size, 1, room - *size, file)) > 0) {
    unsigned char *wider = bytes;
    *size += got;
    if (*size == room && (wider = (unsigned char *)realloc(bytes, room *= 2)) == NULL) free(bytes);
    bytes = wider;
  }
  if (file != NULL) fclose(file);
  return bytes;
}

/* Print reports of a cell, one a line. */
int main(int words, char **word) {
  struct region region;
  size_t size = 0, room = 0;
  unsigned char *map = words < 3 ? NULL : region_read(word[1], &size);
  FILE *random = fopen("/dev/urandom", "rb");
  uint64_t *arena = NULL;
  uint32_t report;
  char *end = NULL;
  unsigned long cell = words < 3 ? 0 : strtoul(word[2], &end, 10);
  long times = words > 3 ? strtol(word[3], NULL, 10) : 1;
  int code;
  if (map == NULL || random == NULL || *end != 0 || cell > 0xffffffffu) {
    fprintf(stderr, "usage: sample_region region.map CELL [COUNT]\n");
    return 2;
  }
  code = region_room(map, size, &room);
  if (code == REGION_GOOD) arena = (uint64_t *)malloc(room);
  if (code == REGION_GOOD) code = region_open(&region, map, size, arena, room);
  for (; code == REGION_GOOD && times > 0; times--) {
    code = region_draw(&region, (uint32_t)cell, region_from_file, random, &report);
    if (code == REGION_GOOD) printf("%lu\n", (unsigned long)report);
  }
  if (code != REGION_GOOD) fprintf(stderr, "%s\n", region_message(code));
  free(arena);
  free(map);
  fclose(random);
  return code == REGION_GOOD ? 0 : 1;
}
#endif

#endif
