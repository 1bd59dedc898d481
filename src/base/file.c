#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

int file_read(struct arena *a, const char *path, size_t max_bytes, char **data, size_t *size,
              struct err *e) {
  *data = NULL;
  *size = 0;
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) {
    int code = errno == ENOENT || errno == ENOTDIR || errno == EACCES ? EXIT_USAGE : EXIT_IO;
    err_set(e, code, "cannot open '%s': %s", path, strerror(errno));
    if (fd >= 0) {
      close(fd);
    }
    return e->code;
  }
  if (S_ISDIR(st.st_mode)) {
    close(fd);
    return err_set(e, EXIT_USAGE, "'%s' is a folder, a file is expected", path);
  }
  // gzread passes plain files through
  gzFile gz = gzdopen(fd, "rb");
  if (gz == NULL) {
    close(fd);
    return err_set(e, EXIT_IO, "cannot read '%s': out of memory", path);
  }
  // room for a plain file from the start; decompression doubles it as needed
  size_t room = (size_t)st.st_size + 2;
  if (room > max_bytes + 2) {
    room = max_bytes + 2;
  }
  char *buf = arena_alloc(a, room);
  size_t n = 0;
  for (;;) {
    if (n + 1 == room) {
      size_t more = 2 * room < max_bytes + 2 ? 2 * room : max_bytes + 2;
      buf = memcpy(arena_alloc(a, more), buf, n);
      room = more;
    }
    size_t want = room - 1 - n;
    int got = gzread(gz, buf + n, want > INT_MAX / 2 ? INT_MAX / 2 : (unsigned)want);
    if (got < 0) {
      int number;
      const char *why = gzerror(gz, &number);
      err_set(e, EXIT_IO, "cannot read '%s': %s", path, number == Z_ERRNO ? strerror(errno) : why);
      break;
    }
    n += (size_t)got;
    if (n > max_bytes) {
      err_set(e, EXIT_USAGE, "'%s' is larger than the %zu bytes that are accepted", path,
              max_bytes);
      break;
    }
    if (got == 0) {
      break;
    }
  }
  // a gzip file that ends early shows only here
  int closed = gzclose(gz);
  if (e->code == 0 && closed == Z_BUF_ERROR) {
    err_set(e, EXIT_USAGE, "'%s' is a truncated gzip file", path);
  }
  if (e->code != 0) {
    return e->code;
  }
  buf[n] = '\0';
  *data = buf;
  *size = n;
  return 0;
}

static int write_all(int fd, const void *data, size_t size) {
  const char *p = data;
  while (size > 0) {
    ssize_t n = write(fd, p, size);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return -1;
    }
    p += n;
    size -= (size_t)n;
  }
  return 0;
}

// length of the folder part of a path, without its last '/'; 0 when there is none
static int folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : slash == path ? 1 : (int)(slash - path);
}

int file_write_atomic(const char *path, const void *data, size_t size, struct err *e) {
  char tmp[PATH_MAX];
  int n = snprintf(tmp, sizeof tmp, "%s.tmp%ld", path, (long)getpid());
  if (n < 0 || n >= (int)sizeof tmp) {
    return err_set(e, EXIT_IO, "path is too long: '%.200s...'", path);
  }
  int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return err_set(e, EXIT_IO, "cannot write '%s': %s", path, strerror(errno));
  }
  bool failed = write_all(fd, data, size) != 0 || fsync(fd) != 0;
  int number = errno;
  if (close(fd) != 0 && !failed) {
    failed = true;
    number = errno;
  }
  if (!failed && rename(tmp, path) != 0) {
    failed = true;
    number = errno;
  }
  if (failed) {
    unlink(tmp);
    return err_set(e, EXIT_IO, "cannot write '%s': %s", path, strerror(number));
  }
  // the rename itself must survive a power cut; a file system that cannot sync folders is no error
  char folder[PATH_MAX];
  int length = folder_length(path);
  snprintf(folder, sizeof folder, "%.*s", length > 0 ? length : 1, length > 0 ? path : ".");
  int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    fsync(dir);
    close(dir);
  }
  return 0;
}

int file_write_gz(const char *path, const void *data, size_t size, struct err *e) {
  // 16 asks for a gzip wrapper; its time stamp stays 0, so equal content gives equal files
  z_stream z = {0};
  if (size > UINT_MAX ||
      deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    return err_set(e, EXIT_IO, "cannot compress '%s'", path);
  }
  struct arena scratch;
  arena_init(&scratch);
  size_t bound = deflateBound(&z, size);
  z.next_out = arena_alloc(&scratch, bound);
  z.avail_out = (unsigned)bound;
  unsigned char *out = z.next_out;
  z.next_in = (unsigned char *)(uintptr_t)data; // zlib does not write there
  z.avail_in = (unsigned)size;
  int status = deflate(&z, Z_FINISH);
  size_t n = z.total_out;
  deflateEnd(&z);
  if (status != Z_STREAM_END) {
    err_set(e, EXIT_IO, "cannot compress '%s'", path);
  } else {
    file_write_atomic(path, out, n, e);
  }
  arena_release(&scratch);
  return e->code;
}

int dir_make(const char *path, struct err *e) {
  char part[PATH_MAX];
  size_t n = strlen(path);
  if (n == 0 || n >= sizeof part) {
    return err_set(e, EXIT_IO, "cannot make folder '%.200s': path is %s", path,
                   n == 0 ? "empty" : "too long");
  }
  memcpy(part, path, n + 1);
  // each parent in turn, then the folder itself
  for (size_t i = 1; i <= n; i++) {
    if (part[i] != '/' && part[i] != '\0') {
      continue;
    }
    part[i] = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST) {
      return err_set(e, EXIT_IO, "cannot make folder '%s': %s", part, strerror(errno));
    }
    part[i] = i < n ? '/' : '\0';
  }
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
    return err_set(e, EXIT_IO, "cannot make folder '%s': a file of that name exists", path);
  }
  return 0;
}

bool file_exists(const char *path) {
  return access(path, F_OK) == 0;
}

int file_sha256(const char *path, char hex[65], struct err *e) {
  hex[0] = '\0';
  FILE *f = fopen(path, "rb");
  struct stat st;
  if (f == NULL || fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
    int code = f == NULL && errno != ENOENT ? EXIT_IO : EXIT_USAGE;
    err_set(e, code, "cannot read '%s': %s", path, f == NULL ? strerror(errno) : "not a file");
    if (f != NULL) {
      fclose(f);
    }
    return e->code;
  }
  struct arena scratch;
  arena_init(&scratch);
  size_t size = (size_t)st.st_size;
  void *data = arena_alloc(&scratch, size);
  if (fread(data, 1, size, f) != size) {
    err_set(e, EXIT_IO, "cannot read '%s': it became shorter while being read", path);
  } else {
    sha256_hex(data, size, hex);
  }
  fclose(f);
  arena_release(&scratch);
  return e->code;
}

const char *dsim_home(void) {
  static char home[PATH_MAX];
  const char *given = getenv("DSIM_HOME");
  if (given != NULL && given[0] != '\0') {
    snprintf(home, sizeof home, "%s", given);
    size_t n = strlen(home);
    while (n > 1 && home[n - 1] == '/') {
      home[--n] = '\0';
    }
    return home;
  }
  ssize_t n = readlink("/proc/self/exe", home, sizeof home - 1);
  if (n <= 0) {
    return strcpy(home, ".");
  }
  home[n] = '\0';
  home[folder_length(home)] = '\0';
  // test binaries and BUILD folders lie below the tree that holds the experiments
  char up[PATH_MAX];
  memcpy(up, home, sizeof up);
  for (int length; (length = folder_length(up)) > 0;) {
    char probe[PATH_MAX + 16];
    snprintf(probe, sizeof probe, "%s/experiments", up);
    if (file_exists(probe)) {
      memcpy(home, up, sizeof home);
      break;
    }
    if (length == 1) {
      break; // reached the root
    }
    up[length] = '\0';
  }
  return home;
}

const char *file_find(struct arena *a, const char *path) {
  if (file_exists(path)) {
    return arena_strdup(a, path);
  }
  if (path[0] == '/' || path[0] == '\0') {
    return NULL;
  }
  char full[2 * PATH_MAX];
  int n = snprintf(full, sizeof full, "%s/%s", dsim_home(), path);
  return n > 0 && n < PATH_MAX && file_exists(full) ? arena_strdup(a, full) : NULL;
}
