/* Reports in the place of fixes, in the shape of Android's Location and iOS' CLLocation. C99, with <math.h>.
 *
 *   #include "region_location.h"                           includes sample_region.c: one file of a program does so
 *
 *   struct region_location last = {0};                     kept between starts, like the memory
 *   uint32_t draws = 10;                                   new reports that the app still allows today
 *   region_locate(&region, &memory, longitude, latitude, time, &draws, random_bytes, 0, &last);
 *
 * `last` gets the report of a fix: degrees to a tenth of a cell, and `accuracy`, metres about them. The map of a region
 * has no radius of 95 %, so that `accuracy` holds all of the map. `time` is that of the fix, milliseconds since 1970.
 * A new draw takes one of `draws`. Without any left `last` stays as it is, an earlier report with its time. If there is
 * none, it gets the centre of the map. It returns REGION_GOOD, or another code of sample_region.c with `last` unchanged:
 * REGION_CELL for a fix off the map.
 *
 * The time of a draw reveals how far the report lies from the cell: use it at a fixed time after the fix. The plane of the
 * map is REGION_PLANE, which the export writes above. Projections are doubles, by the formulas of web/device/plane.mjs:
 * the fix of a phone closer to a border than a micrometre may fall on its other side.
 */
#ifndef REGION_LOCATION_H
#define REGION_LOCATION_H

#include "sample_region.c"

#include <math.h>

struct region_location {
  double longitude, latitude, accuracy; /* degrees, metres; accuracy 0: no report yet */
  int64_t time;
  int remembered;
};

/* The azimuthal equidistant plane about a centre: degrees; metres of the unit; first corner and side of cells, in the unit;
 * decimals of degrees that name a cell. */
static const struct region_plane {
  double longitude, latitude, metres, origin[2], side[2];
  int decimals;
} region_plane = REGION_PLANE;

static const double region_pi = 3.14159265358979323846;
static const double region_flat = 1 / 298.257223563, region_minor = 6378137 * (1 - 1 / 298.257223563); /* WGS 84 */

struct region_path {
  double sine0, cosine0, start, k2;
};

static void region_reduced(double latitude, double *sine, double *cosine) {
  double size, angle = latitude * region_pi / 180;
  *sine = (1 - region_flat) * sin(angle), *cosine = cos(angle);
  size = hypot(*sine, *cosine);
  *sine /= size, *cosine /= size;
}

static struct region_path region_path_of(double sine, double cosine, double east, double north) {
  struct region_path path;
  double second = region_flat * (2 - region_flat) / ((1 - region_flat) * (1 - region_flat));
  path.sine0 = east * cosine;
  path.cosine0 = hypot(north, east * sine);
  path.start = atan2(sine, north * cosine);
  path.k2 = second * path.cosine0 * path.cosine0;
  return path;
}

static double region_speed(const struct region_path *path, double at) {
  return sqrt(1 + path->k2 * sin(at) * sin(at));
}

/* Equations (1) and (2) of plane.mjs by ten Gauss points: the length of an arc in units of b, and the lag. */
static double region_integral(const struct region_path *path, double arc, int lag) {
  static const double node[5] = {0.1488743389816312, 0.4333953941292472, 0.6794095682990244, 0.8650633666889845,
                                 0.9739065285171717};
  static const double weight[5] = {0.2955242247147529, 0.2692667193099963, 0.219086362515982, 0.1494513491505806,
                                   0.0666713443086881};
  double half = arc / 2, middle = path->start + arc / 2, sum = 0;
  int k, side;
  for (k = 0; k < 5; k++) {
    for (side = -1; side <= 1; side += 2) {
      double speed = region_speed(path, middle + side * half * node[k]);
      sum += weight[k] * half * (lag ? (2 - region_flat) / (1 + (1 - region_flat) * speed) : speed);
    }
  }
  return lag ? region_flat * path->sine0 * sum : sum;
}

static double region_within_180(double angle) {
  double within = angle - 360 * floor(angle / 360 + 0.5);
  return within == -180 ? 180 : within;
}

/* Metres east and north of degrees. */
static void region_forward(double longitude, double latitude, double at[2]) {
  double apart = region_within_180(longitude - region_plane.longitude) * region_pi / 180, omega = apart;
  double sine1, cosine1, sine2, cosine2;
  int step;
  at[0] = at[1] = 0;
  /* PROJ treats nearer points as the centre itself. */
  if (fabs(apart) < 1e-10 && fabs((latitude - region_plane.latitude) * region_pi / 180) < 1e-10) return;
  region_reduced(region_plane.latitude, &sine1, &cosine1);
  region_reduced(latitude, &sine2, &cosine2);
  for (step = 0;; step++) {
    double east = cosine2 * sin(omega), north = cosine1 * sine2 - sine1 * cosine2 * cos(omega), next, arc;
    double across = hypot(east, north);
    struct region_path path;
    if (across == 0) return;
    arc = atan2(across, sine1 * sine2 + cosine1 * cosine2 * cos(omega));
    path = region_path_of(sine1, cosine1, east / across, north / across);
    next = apart + region_integral(&path, arc, 1);
    if (fabs(next - omega) < 1e-16 || step == 50) {
      double length = region_minor * region_integral(&path, arc, 0);
      at[0] = length * east / across, at[1] = length * north / across;
      return;
    }
    omega = next;
  }
}

static double region_longitude_on(const struct region_path *path, double at) {
  return atan2(path->sine0 * sin(at), cos(at));
}

/* Degrees of metres east and north. */
static void region_backward(const double at[2], double *longitude, double *latitude) {
  double length = hypot(at[0], at[1]), arc = length / region_minor, sine, cosine, end, omega;
  struct region_path path;
  int step;
  *longitude = region_plane.longitude, *latitude = region_plane.latitude;
  if (length == 0) return;
  region_reduced(region_plane.latitude, &sine, &cosine);
  path = region_path_of(sine, cosine, at[0] / length, at[1] / length);
  for (step = 0; step < 50; step++) {
    double excess = region_integral(&path, arc, 0) - length / region_minor;
    arc -= excess / region_speed(&path, path.start + arc);
    if (fabs(excess) < 1e-16) break;
  }
  end = path.start + arc;
  sine = path.cosine0 * sin(end);
  *latitude = atan2(sine, (1 - region_flat) * hypot(path.cosine0 * cos(end), path.sine0)) * 180 / region_pi;
  omega = region_longitude_on(&path, end) - region_longitude_on(&path, path.start);
  omega -= region_integral(&path, arc, 1);
  *longitude = region_within_180(region_plane.longitude + omega * 180 / region_pi);
}

/* The location of a point of the map, in its unit from the first corner. */
static void region_describe(const struct region *region, const double point[2], struct region_location *location) {
  double metres[2], rounded[2], away[2], tens = pow(10, region_plane.decimals);
  int axis;
  for (axis = 0; axis < 2; axis++) {
    double span = region->cells[axis] * region_plane.side[axis];
    away[axis] = fmax(point[axis], span - point[axis]) * region_plane.metres;
    metres[axis] = (region_plane.origin[axis] + point[axis]) * region_plane.metres;
  }
  region_backward(metres, &location->longitude, &location->latitude);
  location->longitude = floor(location->longitude * tens + 0.5) / tens;
  location->latitude = floor(location->latitude * tens + 0.5) / tens;
  /* The radius is about the point; degrees have fewer digits. */
  region_forward(location->longitude, location->latitude, rounded);
  location->accuracy = ceil(hypot(away[0], away[1]) + hypot(rounded[0] - metres[0], rounded[1] - metres[1]));
}

static int region_locate(struct region *region, struct region_memory *memory, double longitude, double latitude, int64_t time,
                         uint32_t *draws, region_random random_bytes, void *context, struct region_location *last) {
  uint64_t at[2];
  double metres[2], point[2];
  uint32_t report;
  int axis, code, remembered;
  if (!(fabs(longitude) <= 180 && fabs(latitude) <= 90)) return REGION_CELL;
  region_forward(longitude, latitude, metres);
  for (axis = 0; axis < 2; axis++) {
    double steps = (metres[axis] / region_plane.metres - region_plane.origin[axis]) / region_plane.side[axis];
    if (!(steps >= 0 && steps <= region->cells[axis])) return REGION_CELL;
    at[axis] = (uint64_t)(steps * 65536);
    /* The upper border belongs to the last cell. */
    if (at[axis] >> 16 == region->cells[axis]) at[axis]--;
  }
  if (*draws == 0 && region_find(memory, at) == memory->count) {
    for (axis = 0; axis < 2; axis++) point[axis] = region->cells[axis] * region_plane.side[axis] / 2;
    if (last->accuracy == 0) region_describe(region, point, last), last->time = time, last->remembered = 0;
    return REGION_GOOD;
  }
  code = region_report(region, memory, at, random_bytes, context, &report, &remembered);
  if (code != REGION_GOOD) return code;
  if (!remembered) --*draws;
  point[0] = (report / region->cells[1] + 0.5) * region_plane.side[0];
  point[1] = (report % region->cells[1] + 0.5) * region_plane.side[1];
  region_describe(region, point, last);
  last->time = time, last->remembered = remembered;
  return REGION_GOOD;
}

#endif
