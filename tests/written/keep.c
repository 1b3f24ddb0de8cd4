/* Keeps what the program under test deletes.
 *
 * Preloaded into the whole test suite by `scripts/test`: a file in a project's private folder that is
 * deleted or replaced is first linked into the folder that WAYLEAVE_KEEP names, so that the last step
 * can search everything that was ever written. Knows nothing of what the files hold. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PRIVATE[] = "/.wayleave/";

static void keep(const char *path) {
    static atomic_uint count;
    const char *folder = getenv("WAYLEAVE_KEEP");
    const char *within = strstr(path, PRIVATE);
    if (!folder || !within)
        return;
    char name[NAME_MAX + 1];
    snprintf(name, sizeof name, "%s", within + sizeof PRIVATE - 1);
    for (char *at = name; *at; at++)
        if (*at == '/')
            *at = '+';
    char kept[PATH_MAX];
    int length = snprintf(kept, sizeof kept, "%s/%d-%u-%.150s", folder, (int)getpid(),
                          atomic_fetch_add(&count, 1), name);
    if (length > 0 && (size_t)length < sizeof kept)
        (void)!link(path, kept);
}

/* The whole path of a name in an open folder. */
static void keep_at(int folder, const char *name) {
    char path[PATH_MAX], within[64], whole[PATH_MAX + NAME_MAX + 2];
    if (!getenv("WAYLEAVE_KEEP"))
        return;
    if (*name == '/') {
        keep(name);
        return;
    }
    if (folder == AT_FDCWD) {
        char *real = realpath(name, NULL);
        keep(real ? real : name);
        free(real);
        return;
    }
    snprintf(within, sizeof within, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(within, path, sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = 0;
    snprintf(whole, sizeof whole, "%s/%.255s", path, name);
    keep(whole);
}

int unlink(const char *path) {
    static int (*real)(const char *);
    if (!real)
        real = dlsym(RTLD_NEXT, "unlink");
    keep_at(AT_FDCWD, path);
    return real(path);
}

int unlinkat(int folder, const char *path, int flags) {
    static int (*real)(int, const char *, int);
    if (!real)
        real = dlsym(RTLD_NEXT, "unlinkat");
    if (!(flags & AT_REMOVEDIR))
        keep_at(folder, path);
    return real(folder, path, flags);
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (!real)
        real = dlsym(RTLD_NEXT, "rename");
    keep_at(AT_FDCWD, to);
    return real(from, to);
}
