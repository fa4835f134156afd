#include "peer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MOST_SAMPLES = 1 << 22 };

static const char *mode;
static uint64_t length;
static double until;
static float *samples; /* of null calls, in seconds */
static int sample_count;

static void *worker(void *connection)
{
    intptr_t code = 0;
    double begun = now(), ended;
    if (strcmp(mode, "null"))
        return (void *)(intptr_t)stream(connection, !strcmp(mode, "put") ? PUT : GET, length);
    do {
        if ((code = RXR_Null(connection)))
            break;
        ended = now();
        int i = __sync_fetch_and_add(&sample_count, 1);
        if (i < MOST_SAMPLES)
            samples[i] = ended - begun;
        begun = ended;
    } while (ended < until);
    return (void *)code;
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static double cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* percentile of the samples, in microseconds. */
static double percentile(int n, double part) { return n ? samples[(int)((n - 1) * part)] * 1e6 : 0; }

int32_t perf(struct rx_connection *c, const char *what, double amount, int threads)
{
    pthread_t *t = calloc(threads, sizeof *t);
    double begun, used, elapsed;
    int32_t code = RXR_Null(c); /* the connection is there, and the client known, when the clock starts */
    mode = what;
    length = amount * (1 << 20);
    samples = malloc(MOST_SAMPLES * sizeof *samples);
    used = cpu();
    begun = now();
    until = begun + amount;
    for (int i = 0; i < threads; i++) {
        if (i && i % 4 == 0)
            c = dial(); /* a connection has four channels */
        pthread_create(&t[i], NULL, worker, c);
    }
    for (int i = 0; i < threads; i++) {
        void *result;
        pthread_join(t[i], &result);
        if (result)
            code = (intptr_t)result;
    }
    elapsed = now() - begun;
    used = cpu() - used;
    if (!strcmp(what, "null")) {
        int n = sample_count < MOST_SAMPLES ? sample_count : MOST_SAMPLES;
        qsort(samples, n, sizeof *samples, ascending);
        printf("perf mode=null threads=%d calls=%d seconds=%.3f calls/s=%.0f p50=%.1f p90=%.1f p99=%.1f p99.9=%.1f cpu=%.2f\n", threads, n,
               elapsed, n / elapsed, percentile(n, .5), percentile(n, .9), percentile(n, .99), percentile(n, .999), used);
    } else
        printf("perf mode=%s threads=%d MiB=%.0f seconds=%.3f MB/s=%.1f cpu=%.2f\n", what, threads, amount, elapsed,
               length * (double)threads / 1e6 / elapsed, used);
    return code;
}
