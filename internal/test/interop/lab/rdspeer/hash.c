/* SHA-256, which the kernel computes. */
#include "rdspeer.h"

#include <linux/if_alg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHA256 = 32 };

int hash_begin(void)
{
    static int algorithm = -1;
    struct sockaddr_alg a = { .salg_family = AF_ALG, .salg_type = "hash", .salg_name = "sha256" };
    if (algorithm < 0) {
        algorithm = socket(AF_ALG, SOCK_SEQPACKET, 0);
        if (algorithm < 0 || bind(algorithm, (struct sockaddr *)&a, sizeof a))
            die("AF_ALG");
    }
    int h = accept(algorithm, NULL, 0);
    if (h < 0)
        die("AF_ALG: accept");
    return h;
}

void hash_add(int h, const unsigned char *p, size_t n)
{
    if (n > 0 && send(h, p, n, MSG_MORE) != (ssize_t)n)
        die("AF_ALG: send");
}

const char *hash_end(int h)
{
    static char hex[2 * SHA256 + 1];
    unsigned char sum[SHA256];
    if (read(h, sum, sizeof sum) != sizeof sum)
        die("AF_ALG: read");
    close(h);
    for (int i = 0; i < SHA256; i++)
        sprintf(hex + 2 * i, "%02x", sum[i]);
    return hex;
}
