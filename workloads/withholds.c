// Runs a program from a file system of its own, as any user can: FUSE below an overlay, in a user namespace. The overlay
// uses the rights of who has mounted it, so other users' processes get through to FUSE, too. As soon as a file exists,
// nothing is answered any more. The connection ends with this process, and then all who wait get an error.
// Arguments: an empty folder, the file, and the program with its arguments; an argument `@` is replaced by the path of the
// program's file there. Ends with the program. Exit status 77: this kernel does not let a user do this.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_NODE 2
#define LONGEST_READ (256 << 10)
// Zeros follow a shorter program.
#define LEAST_LEN (1 << 20)

static char *image;
static size_t image_len;
static int connection;
static const char *withholds;

static void answer(const struct fuse_in_header *to, int error, const void *data, size_t len) {
    static char room[sizeof(struct fuse_out_header) + LONGEST_READ];
    struct fuse_out_header head = {.len = sizeof head + len, .error = error, .unique = to->unique};
    memcpy(room, &head, sizeof head);
    if (len) memcpy(room + sizeof head, data, len);
    // A request that was interrupted is gone.
    if (write(connection, room, head.len) < 0 && errno != ENOENT) perror("answer");
}

static struct fuse_attr attributes(uint64_t node) {
    int is_file = node == FILE_NODE;
    struct fuse_attr found = {.ino = node, .nlink = 1, .blksize = 4096};
    found.mode = is_file ? S_IFREG | 0755 : S_IFDIR | 0755;
    found.size = is_file ? image_len : 0;
    found.blocks = (found.size + 511) / 512;
    return found;
}

static void answer_read(const struct fuse_in_header *request, const struct fuse_read_in *wanted) {
    size_t left = wanted->offset < image_len ? image_len - wanted->offset : 0;
    size_t len = wanted->size < left ? wanted->size : left;
    answer(request, 0, image + wanted->offset, len < LONGEST_READ ? len : LONGEST_READ);
}

static void answer_request(const struct fuse_in_header *request, const void *argument) {
    switch (request->opcode) {
    case FUSE_INIT: {
        // Without reading ahead, only what was used is in memory.
        struct fuse_init_out out = {.major = 7, .minor = 31, .max_write = 65536, .time_gran = 1};
        answer(request, 0, &out, sizeof out);
        return;
    }
    case FUSE_LOOKUP: {
        struct fuse_entry_out out = {.nodeid = FILE_NODE, .entry_valid = 1, .attr = attributes(FILE_NODE)};
        int is_there = strcmp(argument, "program") == 0;
        answer(request, is_there ? 0 : -ENOENT, &out, is_there ? sizeof out : 0);
        return;
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr = attributes(request->nodeid)};
        answer(request, 0, &out, sizeof out);
        return;
    }
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
        struct fuse_open_out out = {.fh = 1};
        answer(request, 0, &out, sizeof out);
        return;
    }
    case FUSE_STATFS: {
        struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255}};
        answer(request, 0, &out, sizeof out);
        return;
    }
    case FUSE_READ: answer_read(request, argument); return;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FLUSH:
    case FUSE_ACCESS: answer(request, 0, NULL, 0); return;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: return;
    default: answer(request, -ENOSYS, NULL, 0);
    }
}

static void *serve(void *unused) {
    static char request[1 << 20];
    for (;;) {
        ssize_t len = read(connection, request, sizeof request);
        if (len < 0 && errno != EINTR && errno != ENOENT) return unused;
        if (len > 0 && access(withholds, F_OK) != 0)
            answer_request((void *)request, request + sizeof(struct fuse_in_header));
    }
}

static void refuse(const char *what) {
    perror(what);
    exit(77);
}

static void set(const char *file, const char *text) {
    int opened = open(file, O_WRONLY | O_CLOEXEC);
    if (opened < 0 || write(opened, text, strlen(text)) < 0) refuse(file);
    close(opened);
}

static void enter_namespaces(void) {
    char text[64];
    unsigned user = getuid(), group = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) refuse("unshare");
    set("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %u 1", user);
    set("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "0 %u 1", group);
    set("/proc/self/gid_map", text);
}

static void mount_all(const char *folder) {
    char options[512];
    if (chdir(folder) || mkdir("served", 0755) || mkdir("empty", 0755) || mkdir("seen", 0755)) refuse(folder);
    const char *device = getenv("WORKLOAD_FUSE");
    connection = open(device ? device : "/dev/fuse", O_RDWR | O_CLOEXEC);
    if (connection < 0) refuse("/dev/fuse");
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", connection);
    if (mount("withholds", "served", "fuse", MS_NODEV | MS_NOSUID, options)) refuse("mount fuse");
    pthread_t thread;
    pthread_create(&thread, NULL, serve, NULL);
    snprintf(options, sizeof options, "lowerdir=%s/served:%s/empty,userxattr", folder, folder);
    if (mount("overlay", "seen", "overlay", 0, options)) refuse("mount overlay");
}

static void load(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) refuse(path);
    size_t file_len = lseek(file, 0, SEEK_END);
    image_len = file_len < LEAST_LEN ? LEAST_LEN : file_len;
    image = calloc(1, image_len);
    for (size_t at = 0; at < file_len;) {
        ssize_t len = pread(file, image + at, file_len - at, at);
        if (len <= 0) refuse(path);
        at += len;
    }
    close(file);
}

int main(int argc, char **argv) {
    if (argc < 4) return 97;
    static char path[300];
    withholds = argv[2];
    load(argv[3]);
    enter_namespaces();
    mount_all(argv[1]);
    snprintf(path, sizeof path, "%s/seen/program", argv[1]);
    for (int i = 4; i < argc; i++)
        if (strcmp(argv[i], "@") == 0) argv[i] = path;
    pid_t child = fork();
    if (child == 0) {
        execv(path, argv + 3);
        _exit(98);
    }
    waitpid(child, NULL, 0);
    _exit(0);
}
