#include "motion/motion.h"
#include "motion/columns.h"
#include "motion/sidecar.h"
#include "base/file.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_BYTES = 1 << 29, MAX_COLUMNS = 4096 };

struct clip_options clip_options_default(void) {
  return (struct clip_options){.row_first = -1, .row_last = -1, .dz = NAN};
}

// One line of the text, cut out in place: no line end, no blanks around.
struct line {
  char *text, *begin; // begin: of the untrimmed line, where column 1 is
  int number;         // from 1
};

// The next line that holds something; text is NULL at the end.
static struct line next_line(char **at, int *number) {
  while (**at != '\0') {
    char *begin = *at, *end = strchr(begin, '\n');
    *at = end != NULL ? end + 1 : begin + strlen(begin);
    (*number)++;
    end = end != NULL ? end : *at;
    while (end > begin && isspace((unsigned char)end[-1])) { // takes the CR of CRLF too
      end--;
    }
    *end = '\0';
    char *text = begin;
    while (isspace((unsigned char)*text)) {
      text++;
    }
    if (*text != '\0' && *text != '#') {
      return (struct line){text, begin, *number};
    }
  }
  return (struct line){NULL, NULL, *number};
}

// Cuts a line at its commas; returns the number of cells, at most MAX_COLUMNS.
static int split(char *text, char **cell) {
  int n = 0;
  for (;;) {
    while (isspace((unsigned char)*text)) {
      text++;
    }
    char *end = text + strcspn(text, ",");
    bool last = *end == '\0';
    cell[n++] = text;
    char *tail = end;
    while (tail > text && isspace((unsigned char)tail[-1])) {
      tail--;
    }
    *tail = '\0';
    *end = '\0';
    if (last || n == MAX_COLUMNS) {
      return n;
    }
    text = end + 1;
  }
}

// a first cell that is a word, but not the word of a number that went wrong
static bool is_header(const char *cell) {
  bool word = isalpha((unsigned char)cell[0]) || cell[0] == '_' || cell[0] == '"';
  return word && strncasecmp(cell, "nan", 3) != 0 && strncasecmp(cell, "inf", 3) != 0;
}

static int parse_cell(double *x, const char *cell, const char *path, const struct line *l,
                      const struct columns *cols, int k, struct err *e) {
  char *end;
  double value = strtod(cell, &end);
  bool plain = cell[0] != '\0' && strspn(cell, "0123456789+-.eE") == strlen(cell);
  if (plain && *end == '\0' && isfinite(value)) {
    *x = value;
    return 0;
  }
  return err_set(e, EXIT_USAGE, "%s:%d:%d: column %d (%s): a finite number expected, found '%.32s'",
                 path, l->number, (int)(cell - l->begin) + 1, k + 1, cols->name[k], cell);
}

// What the caller and the sidecar say together.
static struct clip_options merge(const struct clip_options *opt, const struct sidecar *s) {
  struct clip_options o = opt != NULL ? *opt : clip_options_default();
  o.fps = o.fps > 0 ? o.fps : s->fps;
  if (o.row_first < 0 && o.row_last < 0) {
    o.row_first = s->row_first;
    o.row_last = s->row_last;
  }
  o.row_first = o.row_first < 0 ? 0 : o.row_first;
  o.dz = isnan(o.dz) ? s->dz : o.dz;
  o.order = o.order != CLIP_ORDER_UNSAID ? o.order : s->order;
  o.allow_jumps |= s->allow_jumps;
  o.loop |= s->loop;
  return o;
}

// Reads the frames row_first..row_last of the text into c.
static int read_frames(struct clip *c, struct arena *a, const struct robot *r, const char *path,
                       char *text, const struct clip_options *o, const struct sidecar *s,
                       struct err *e) {
  char *cell[MAX_COLUMNS];
  struct columns cols;
  int number = 0;
  struct line l = next_line(&text, &number);
  if (l.text == NULL) {
    return err_set(e, EXIT_USAGE, "%s: the file holds no frames", path);
  }
  int n = split(l.text, cell), head = l.number;
  struct columns_source from = {.path = path, .line = head, .sidecar = s};
  bool header = is_header(cell[0]);
  if (columns_map(&cols, a, r, header ? cell : NULL, n, o->order, &from, e) != 0) {
    return e->code;
  }
  if (header) {
    l = next_line(&text, &number);
  }

  // room for every line that is left, or for the rows asked
  size_t room = 1;
  for (const char *p = text; *p != '\0'; p++) {
    room += *p == '\n';
  }
  room++;
  if (o->row_last >= 0 && (size_t)(o->row_last - o->row_first) + 1 < room) {
    room = (size_t)(o->row_last - o->row_first) + 1;
  }
  c->qpos = ARENA_NEW(a, double, room *(size_t)r->nq);

  int row = 0;
  while (l.text != NULL) {
    if (header || row > 0) {
      n = split(l.text, cell);
    }
    if (n != cols.n) {
      return err_set(e, EXIT_USAGE, "%s:%d: %d columns, %d expected as in line %d", path, l.number,
                     n, cols.n, head);
    }
    bool wanted = row >= o->row_first && (o->row_last < 0 || row <= o->row_last);
    double *q = c->qpos + (size_t)c->nframe * (size_t)r->nq;
    for (int k = 0; k < n; k++) {
      double x = 0;
      if (parse_cell(&x, cell[k], path, &l, &cols, k, e) != 0) {
        return e->code;
      }
      if (wanted) {
        q[cols.qadr[k]] = x;
      }
    }
    c->nframe += wanted;
    row++;
    l = next_line(&text, &number);
  }

  if (row == 0) {
    return err_set(e, EXIT_USAGE, "%s: a header line, but no frames", path);
  }
  if (o->row_first >= row || o->row_last >= row) {
    return err_set(e, EXIT_USAGE, "%s: rows %d..%d asked, but the file has %d frames (0..%d)", path,
                   o->row_first, o->row_last >= 0 ? o->row_last : row - 1, row, row - 1);
  }
  return 0;
}

int clip_read(struct clip *c, struct arena *a, const struct robot *r, const char *path,
              const struct clip_options *opt, struct err *e) {
  struct sidecar s = sidecar_none();
  const char *beside = sidecar_path(a, path);
  if (file_exists(beside) && sidecar_read(&s, a, beside, e) != 0) {
    return e->code;
  }
  return clip_read_with(c, a, r, path, &s, opt, e);
}

int clip_read_with(struct clip *c, struct arena *a, const struct robot *r, const char *path,
                   const struct sidecar *s, const struct clip_options *opt, struct err *e) {
  *c = (struct clip){.nq = r->nq};
  struct clip_options o = merge(opt, s);
  char *text;
  size_t size;
  if (file_read(a, path, MAX_BYTES, &text, &size, e) != 0) {
    return e->code;
  }
  if (!(o.fps > 0)) {
    return err_set(e, EXIT_USAGE,
                   "%s: frames per second unknown: give --fps N, or write 'fps: N' into %s", path,
                   sidecar_path(a, path));
  }
  if (o.row_last >= 0 && o.row_last < o.row_first) {
    return err_set(e, EXIT_USAGE, "%s: rows %d..%d: the last is before the first", path,
                   o.row_first, o.row_last);
  }
  bool free_root = r->nlink > 0 && r->link[0].type == JOINT_FREE;
  if (o.dz != 0 && !free_root) {
    return err_set(e, EXIT_USAGE, "%s: dz %g asked, but robot '%s' has no free root to raise", path,
                   o.dz, r->name);
  }
  if (strlen(text) != size) {
    return err_set(e, EXIT_USAGE, "%s: not a text file (it holds a zero byte)", path);
  }
  // some editors put a byte order mark in front
  text += strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  if (read_frames(c, a, r, path, text, &o, s, e) != 0) {
    return e->code;
  }
  for (int k = 0; k < c->nframe && free_root; k++) {
    c->qpos[k * c->nq + 2] += o.dz;
  }
  c->fps = o.fps;
  c->row_first = o.row_first;
  c->order = o.order != CLIP_ORDER_UNSAID ? o.order : CLIP_ORDER_XYZW;
  c->allow_jumps = o.allow_jumps;
  c->loop = o.loop;
  c->credit = s->credit;
  return 0;
}

void clip_clean(struct clip *c, const struct robot *r) {
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    if (l->type != JOINT_FREE && l->type != JOINT_BALL) {
      continue;
    }
    int adr = l->qadr + (l->type == JOINT_FREE ? 3 : 0);
    for (int k = 0; k < c->nframe; k++) {
      double *q = c->qpos + (size_t)k * (size_t)c->nq + adr;
      double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
      if (!(norm > 1e-9 && isfinite(norm))) {
        q[0] = 1;
        q[1] = q[2] = q[3] = 0;
        norm = 1;
      }
      // of the two quaternions of a rotation, the one nearer to the frame before
      const double *before = k > 0 ? q - c->nq : q;
      double dot = 0;
      for (int j = 0; j < 4; j++) {
        dot += before[j] * q[j];
      }
      double scale = (dot < 0 ? -1 : 1) / norm;
      for (int j = 0; j < 4; j++) {
        q[j] *= scale;
      }
    }
  }
}
