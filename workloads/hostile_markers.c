// Offers recorders that attach a control file for markers, and abuses their handling of it: `hostile_markers
// WHAT READY [TREE]`. The file READY is made when a recorder can attach; then it works until it is killed.
//
// There are two control files, of the form that names a folder (version 1) and of the one that has the rings itself (version 2).
// When one of them is switched on, it does WHAT: `cut` makes it shorter, `grow` gives it 16 TB, `holes` frees its memory, `seal` forbids
// to write to it, `count` claims more rings than could be read, `rings` makes many invalid ones. `mount`
// enters a mount namespace where /dev/shm is a link to TREE/private. It mounts TREE/files over each folder
// for markers that it finds or gets from the recorder. `fake` has two files that only look like control
// files: an ordinary one of that name, and one of large pages. READY gets the state of the former again and
// again.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STATE = 8, STOPPING = 1, RINGS = 16, FIRST = 1 << 16, STRIDE = (1 << 20) + (1 << 16) };

// No memory of the files is ever touched.
static int controls[2];

static void fail(const char *what) {
  perror(what);
  // 77: this machine does not let a plain user do it.
  exit(errno == EPERM || errno == EACCES || errno == ENOSPC ? 77 : 1);
}

static void put(int fd, const void *bytes, size_t count, off_t at) {
  if (pwrite(fd, bytes, count, at) != (ssize_t)count)
    perror("pwrite");
}

static void put_u32(int fd, uint32_t number, off_t at) { put(fd, &number, 4, at); }

static int control(int version) {
  int fd = memfd_create("nyquist-markers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  char magic[] = "nyqctrl";
  magic[7] = version;
  if (fd < 0 || ftruncate(fd, 4096))
    fail("memfd_create");
  put(fd, magic, 8, 0);
  return fd;
}

static int is_on(int version) {
  uint32_t state = 0;
  if (pread(controls[version - 1], &state, 4, STATE) != 4)
    return 0;
  return version == 1 ? state != 0 : state > STOPPING;
}

static void make_rings(int fd) {
  uint8_t ring[192 + 4096];
  memset(ring, 0xff, sizeof ring);
  for (int i = 0; i < 300; i++) {
    uint64_t capacity = i % 3 ? 4096 : 1 << 26, written = i % 5 ? 64 : 1ull << 40, pid = i, namespace = i % 2 ? i : 0;
    memcpy(ring, "nyqmark\1", 8);
    memcpy(ring + 8, &capacity, 8);
    memcpy(ring + 16, &pid, 8);
    memcpy(ring + 24, &namespace, 8);
    memcpy(ring + 64, &written, 8);
    memset(ring + 128, 0, 8);
    put(fd, ring, sizeof ring, FIRST + (off_t)i * STRIDE);
  }
  put_u32(fd, 300, RINGS);
}

static void attack(const char *what, int version) {
  int fd = controls[version - 1];
  if (!strcmp(what, "cut") && ftruncate(fd, 0))
    perror("ftruncate");
  if (!strcmp(what, "grow") && ftruncate(fd, 1ll << 44))
    perror("ftruncate");
  if (!strcmp(what, "holes"))
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
  if (!strcmp(what, "seal"))
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
  if (!strcmp(what, "count"))
    put_u32(fd, UINT32_MAX, RINGS);
  if (!strcmp(what, "rings"))
    make_rings(fd);
}

static void write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  if (fd < 0 || write(fd, text, strlen(text)) < 0)
    fail(path);
  close(fd);
}

// Becomes root of a user and a mount namespace of its own.
static void enter_namespaces(void) {
  char map[2][64];
  snprintf(map[0], 64, "0 %d 1", getuid());
  snprintf(map[1], 64, "0 %d 1", getgid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
    fail("unshare");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", map[0]);
  write_file("/proc/self/gid_map", map[1]);
  if (mount(0, "/", 0, MS_REC | MS_PRIVATE, 0))
    fail("mount");
}

// Removes everything else from /dev, and makes /dev/shm a link.
static void link_shared_memory(const char *tree) {
  char private[4096];
  snprintf(private, sizeof private, "%s/private", tree);
  if (mount("none", "/dev", "tmpfs", 0, 0) || symlink(private, "/dev/shm"))
    fail("/dev/shm");
}

static void mount_over(const char *folder, const char *tree) {
  char files[4096];
  snprintf(files, sizeof files, "%s/files", tree);
  if (mount(files, folder, 0, MS_BIND, 0))
    perror(folder);
}

static void mount_over_all(const char *tree) {
  // The path of the folder, from the recorder.
  char told[4096] = {0};
  if (pread(controls[0], told, 4095, 16) > 0 && told[0] == '/')
    mount_over(told, tree);
  const char *places[] = {"/dev/shm", "/tmp", "/var/tmp"};
  for (int i = 0; i < 3; i++) {
    DIR *place = opendir(places[i]);
    for (struct dirent *entry; place && (entry = readdir(place));) {
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", places[i], entry->d_name);
      if (!strncmp(entry->d_name, "nyquist-markers-", 16))
        mount_over(path, tree);
    }
    if (place)
      closedir(place);
  }
}

// An ordinary file that is shown as a memory file is.
static int ordinary_file(const char *tree) {
  char place[4096];
  snprintf(place, sizeof place, "%s/files", tree);
  if (mount("none", place, "tmpfs", 0, 0) || chdir(place) || mkdir("old", 0700))
    fail("tmpfs");
  if (syscall(SYS_pivot_root, ".", "old") || chdir("/"))
    fail("pivot_root");
  int fd = open("/memfd:nyquist-markers", O_RDWR | O_CREAT, 0666);
  if (fd < 0 || ftruncate(fd, 4096))
    fail("/memfd:nyquist-markers");
  put(fd, "nyqctrl\2", 8, 0);
  return fd;
}

static volatile uint64_t steps;

static void __attribute__((noinline)) work_on(void) {
  for (int i = 0; i < 100000; i++)
    steps++;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  const char *what = argv[1], *tree = argc > 3 ? argv[3] : "";
  int is_mount = !strcmp(what, "mount"), is_fake = !strcmp(what, "fake");
  int ready = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0666);
  if (ready < 0)
    fail(argv[2]);
  if (is_mount || is_fake)
    enter_namespaces();
  if (is_mount)
    link_shared_memory(tree);
  int fake = -1;
  if (is_fake) {
    memfd_create("nyquist-markers", MFD_HUGETLB);
    fake = ordinary_file(tree);
  } else {
    for (int version = 1; version <= 2; version++)
      controls[version - 1] = control(version);
  }
  uint32_t state = 0;
  put_u32(ready, state, 0);
  for (int done[2] = {0};;) {
    work_on();
    if (is_fake && pread(fake, &state, 4, STATE) == 4)
      put_u32(ready, state, 0);
    for (int version = 1; !is_fake && version <= 2; version++) {
      if (done[version - 1] || !is_on(version))
        continue;
      done[version - 1] = 1;
      attack(what, version);
      if (is_mount)
        mount_over_all(tree);
    }
  }
}
