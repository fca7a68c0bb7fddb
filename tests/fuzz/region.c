/* The C99 sampler on mutants of maps; those that reach another branch are kept. See loops.py, which builds and starts
 * it: region SECONDS SEED MAP... It prints executions, maps that were opened, reports drawn and inputs kept.
 */
#include "sample_region.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 14, KEPT = 1 << 12, ROOM = 1 << 22 };
static unsigned char reached[1 << 16], *kept[KEPT];
static size_t sizes[KEPT], inputs;
static int found_branch;
static uint64_t state;

/* Called by the compiler's instrumentation at every branch, by the address behind it. */
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void) {
  uintptr_t place = (uintptr_t)__builtin_return_address(0);
  unsigned char *seen = &reached[(place ^ place >> 16) & 0xffff];
  found_branch |= !*seen, *seen = 1;
}

static uint64_t random_below(uint64_t below) { /* xorshift64*, Vigna 2016 */
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return (state * 0x2545f4914f6cdd1du >> 11) % below;
}

static int bits(void *context, unsigned char *bytes, size_t count) {
  (void)context;
  while (count-- > 0) bytes[count] = (unsigned char)random_below(256);
  return 0;
}

static size_t mutate(unsigned char *map, size_t size) {
  static const uint64_t ends[] = {0, 1, 2, 8, 16, 61, 255, 65534, 65535, 1 << 16, 1u << 31, 0xffffffffu, (uint64_t)1 << 61};
  uint64_t number, count = 1 + random_below(4);
  size_t at, head = 16 + (size_t)map[12] + 256 * (size_t)map[13];
  while (count-- > 0 && size > 48) {
    at = random_below(2) && head + 120 < size ? head + 8 * random_below(15) : random_below(size);
    switch (random_below(5)) {
      case 0: map[at] ^= (unsigned char)(1u << random_below(8)); break;
      case 1: map[at] = (unsigned char)random_below(256); break;
      case 2:
        number = ends[random_below(sizeof ends / sizeof *ends)] + random_below(3) - 1;
        if (at + 8 <= size) memcpy(map + at, &number, 8);
        break;
      case 3: number = random_below(size - at); memmove(map + at, map + at + number, size - at - number), size -= number; break;
      default: if (size + 64 < MOST) memmove(map + at + 8, map + at, size - at), size += 8;
    }
  }
  if (size > 32 && random_below(16)) region_sha256(map, size - 32, map + size - 32);
  return size;
}

int main(int words, char **word) {
  struct region region;
  uint64_t executions = 0, opened = 0, reports = 0;
  time_t end = time(NULL) + atol(word[1]);
  int k;
  state = strtoull(word[2], NULL, 10) + 1;
  for (k = 3; k < words; k++) {
    FILE *file = fopen(word[k], "rb");
    kept[inputs] = malloc(MOST), sizes[inputs] = fread(kept[inputs], 1, MOST, file), inputs++;
    fclose(file);
  }
  while (time(NULL) < end) {
    static unsigned char content[2 * MOST];
    size_t which = random_below(inputs), size = sizes[which], room = 0;
    unsigned char *map;
    memcpy(content, kept[which], size);
    size = mutate(content, size);
    map = malloc(size + !size); /* of its size, so that a sanitizer sees reads beyond it */
    memcpy(map, content, size);
    alarm(60), found_branch = 0, executions++;
    if (region_room(map, size, &room) == REGION_GOOD && room < ROOM) {
      uint64_t *arena = malloc(room);
      if (region_open(&region, map, size, arena, room) == REGION_GOOD) {
        uint32_t cells = region.cells[0] * region.cells[1], report = cells;
        opened++;
        for (k = 0; k < 3; k++)
          if (region_draw(&region, (uint32_t)random_below(cells + 1), bits, NULL, &report) == REGION_GOOD) {
            reports++;
            if (report >= cells) abort();
          }
      }
      free(arena);
    }
    if (found_branch && inputs < KEPT && size <= MOST) {
      kept[inputs] = malloc(MOST), memcpy(kept[inputs], content, size), sizes[inputs++] = size;
    }
    free(map);
  }
  printf("%llu executions, %llu maps opened, %llu reports, %llu inputs kept\n", (unsigned long long)executions,
         (unsigned long long)opened, (unsigned long long)reports, (unsigned long long)inputs);
  return 0;
}
