// Writes markers as docs/markers.md says, without any library: `markers records|cut|samply`.
//
// `records` writes two intervals with fields and a moment, and a file beside them that is no marker file. `cut` writes an
// interval and then bytes that are no record. `samply` writes a file of samply's protocol.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 192, CAPACITY = 4096 };

static uint8_t *file;
static uint64_t written;
static uint8_t record[512];
static size_t len;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void put(const void *bytes, size_t count) {
  memcpy(record + len, bytes, count);
  len += count;
}

static void put_u32(uint32_t number) { put(&number, 4); }
static void put_u64(uint64_t number) { put(&number, 8); }

static void put_text(const char *text) {
  uint16_t count = strlen(text);
  put(&count, 2);
  put(text, count);
}

static void begin(uint8_t kind, uint16_t count) {
  len = 0;
  put_u32(0);
  put((uint8_t[]){kind, 0}, 2);
  put(&count, 2);
}

static void finish(void) {
  while (len % 8)
    record[len++] = 0;
  uint32_t whole = len;
  memcpy(record, &whole, 4);
  memcpy(file + HEADER + written, record, len);
  written += len;
  __atomic_store_n((uint64_t *)(file + 64), written, __ATOMIC_RELEASE);
}

static void open_file(const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d-c.nyqmark", folder, getpid());
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0 || posix_fallocate(fd, 0, HEADER + CAPACITY))
    exit(1);
  file = mmap(0, HEADER + CAPACITY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (file == MAP_FAILED)
    exit(1);
  uint64_t capacity = CAPACITY;
  uint32_t pid = getpid();
  memcpy(file + 8, &capacity, 8);
  memcpy(file + 16, &pid, 4);
  memcpy(file, "nyqmark\1", 8);
}

static void interval(uint64_t start, const char *path, int64_t bytes) {
  begin(3, 2);
  put_u32(1);
  put_u32(0);
  put_u64(start);
  put_u64(now());
  put((uint8_t[]){0, 3}, 2);
  put_text(path);
  put((uint8_t[]){1, 1}, 2);
  put_u64(bytes);
  finish();
}

static void write_records(const char *folder, int cut) {
  open_file(folder);
  begin(1, 0);
  put_u32(syscall(SYS_gettid));
  finish();
  begin(2, 2);
  put_u32(1);
  const char *texts[] = {"load", "load file", "", "", "", "", "path", "", "", "size", "Size", "bytes"};
  for (int i = 0; i < 12; i++)
    put_text(texts[i]);
  finish();
  interval(now() - 2000000, "/a", 4096);
  if (cut) {
    memset(file + HEADER + written, 0xff, 64);
    __atomic_store_n((uint64_t *)(file + 64), written + 64, __ATOMIC_RELEASE);
    return;
  }
  interval(now() - 1000000, "/b", 123);
  begin(4, 0);
  put_u32(0);
  put_u32(4);
  put_u64(now());
  put_u64(0);
  put("tick", 4);
  finish();
  char path[4096];
  snprintf(path, sizeof path, "%s/other.nyqmark", folder);
  FILE *other = fopen(path, "w");
  for (int i = 0; i < 1000; i++)
    fputs("garbage ", other);
  fclose(other);
}

static void write_samplys(void) {
  char path[64];
  snprintf(path, sizeof path, "marker-%d-%ld.txt", getpid(), syscall(SYS_gettid));
  FILE *text = fopen(path, "w+");
  mmap(0, 4096, PROT_READ, MAP_PRIVATE, fileno(text), 0);
  fprintf(text, "%llu %llu first step\n", (unsigned long long)now() - 1000, (unsigned long long)now());
  fprintf(text, "no line of it\n");
  fprintf(text, "%llu %llu second step\n", (unsigned long long)now() - 1000, (unsigned long long)now());
  fclose(text);
}

int main(int argc, char **argv) {
  const char *folder = getenv("NYQUIST_MARKER_DIR");
  if (argc < 2)
    return 2;
  if (!strcmp(argv[1], "samply"))
    write_samplys();
  else if (folder)
    write_records(folder, !strcmp(argv[1], "cut"));
  // Long enough to be sampled.
  for (uint64_t end = now() + 50000000; now() < end;)
    ;
  return 0;
}
