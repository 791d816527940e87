// Writes markers as docs/markers.md says, without any library: `markers records|cut|samply|attach`, and sleeps as many
// milliseconds as a second word says.
//
// `records` writes two intervals with fields and a moment, and a file beside them that is no marker file. `cut` writes an
// interval and then bytes that are no record. `samply` writes a file of samply's protocol. `attach` offers a control file, and in
// each recording it writes moments `parent`, and children that it forks moments `child`.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

// Fills in the header of a new ring.
static void open_ring(void) {
  uint64_t capacity = CAPACITY;
  uint32_t pid = getpid();
  memcpy(file + 8, &capacity, 8);
  memcpy(file + 16, &pid, 4);
  memcpy(file, "nyqmark\1", 8);
  written = 0;
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
  open_ring();
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

static void instant(const char *name) {
  begin(4, 0);
  put_u32(0);
  put_u32(strlen(name));
  put_u64(now());
  put_u64(0);
  put(name, strlen(name));
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
  instant("tick");
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

enum { STATE = 8 / 4, RINGS = 16 / 4, STOPPING = 1, FIRST = 1 << 16, STRIDE = (1 << 20) + (1 << 16) };

static int control;
static uint32_t *page;

static void mark_in_new_ring(const char *name) {
  off_t at = FIRST + (off_t)__atomic_fetch_add(&page[RINGS], 1, __ATOMIC_RELAXED) * STRIDE;
  if (posix_fallocate(control, at, HEADER + CAPACITY))
    exit(1);
  file = mmap(0, HEADER + CAPACITY, PROT_READ | PROT_WRITE, MAP_SHARED, control, at);
  if (file == MAP_FAILED)
    exit(1);
  open_ring();
  begin(1, 0);
  put_u32(syscall(SYS_gettid));
  finish();
  instant(name);
}

// Long enough to be sampled.
static void work(void) {
  for (uint64_t end = now() + 50000000; now() < end;)
    ;
}

// Marks until the recording ends, because marks before its begin are not in it.
static void record_one(uint32_t state) {
  while (__atomic_load_n(&page[STATE], __ATOMIC_ACQUIRE) == state) {
    mark_in_new_ring("parent");
    pid_t child = fork();
    if (child == 0) {
      mark_in_new_ring("child");
      _exit(0);
    }
    waitpid(child, 0, 0);
    work();
  }
}

// Marks in every recording until it is killed.
static void wait_for_recorders(void) {
  control = memfd_create("nyquist-markers", MFD_CLOEXEC);
  if (control < 0 || posix_fallocate(control, 0, 4096))
    exit(1);
  page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
  if (page == MAP_FAILED)
    exit(1);
  memcpy(page, "nyqctrl\2", 8);
  for (uint32_t seen = 0;;) {
    syscall(SYS_futex, &page[STATE], FUTEX_WAIT, seen, 0, 0, 0);
    uint32_t state = __atomic_load_n(&page[STATE], __ATOMIC_ACQUIRE);
    if (state == seen)
      continue;
    seen = state;
    if (state > STOPPING)
      record_one(state);
    else if (state == 0)
      fallocate(control, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FIRST, (off_t)page[RINGS] * STRIDE);
  }
}

int main(int argc, char **argv) {
  const char *folder = getenv("NYQUIST_MARKER_DIR");
  if (argc < 2)
    return 2;
  if (!strcmp(argv[1], "attach"))
    wait_for_recorders();
  else if (!strcmp(argv[1], "samply"))
    write_samplys();
  else if (folder)
    write_records(folder, !strcmp(argv[1], "cut"));
  work();
  // What its clock is can be read while it lives.
  if (argc > 2)
    usleep(atoi(argv[2]) * 1000);
  return 0;
}
