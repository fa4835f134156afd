/*
 * What programs read of the device in sysfs. What libibverbs itself reads there comes
 * from memory, as there may be no view (view.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

URNIC_EXPORT const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/* Prints eight bytes as sysfs does. */
static int print_guid(char *out, size_t size, uint64_t guid)
{
	const uint8_t *b = (const uint8_t *)&guid;

	return snprintf(out, size, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6],
			b[7]);
}

/* The text of a file of the device: its length, or -1 with errno. */
static int read_ours(const struct ibv_device *device, const char *file, char *out, size_t size)
{
	const struct urnic_device *d = urnic_device_info(device);

	if (!d)
		return -1;
	if (!strcmp(file, "fw_ver"))
		return snprintf(out, size, "%s", d->version);
	if (!strcmp(file, "hca_type"))
		return snprintf(out, size, "urnic");
	if (!strcmp(file, "hw_rev"))
		return snprintf(out, size, "0");
	if (!strcmp(file, "node_desc"))
		return snprintf(out, size, "%s", d->name);
	if (!strcmp(file, "node_type"))
		return snprintf(out, size, "%s", d->iwarp ? "4: RNIC" : "1: CA");
	if (!strcmp(file, "node_guid") || !strcmp(file, "sys_image_guid"))
		return print_guid(out, size, d->guid);
	return urnic_minus(ENOENT);
}

/* The text of a real file, without the newline at its end. */
static int read_file(const char *dir, const char *file, char *out, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX * 2];
	ssize_t n;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
		return urnic_minus(ENAMETOOLONG);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, out, size);
	close(fd);
	if (n < 0)
		return -1;
	if (n > 0 && out[n - 1] == '\n')
		out[--n] = 0;
	else if ((size_t)n < size)
		out[n] = 0;
	else
		return urnic_minus(EOVERFLOW);
	return (int)n;
}

/* The device that has a directory, or NULL. */
static struct ibv_device *device_of(const char *dir)
{
	struct ibv_device *d;

	for (uint32_t i = 0; i < urnic_devices(); i++) {
		d = urnic_ibv_device(i);
		if (d && (!strcmp(dir, d->ibdev_path) || !strcmp(dir, d->dev_path)))
			return d;
	}
	return NULL;
}

/* Reads a file of sysfs: its length, or -1 with errno. */
URNIC_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	struct ibv_device *d;
	int n;

	if (!dir || !file || !buf || !size)
		return urnic_minus(EINVAL);
	d = device_of(dir);
	if (!d)
		return read_file(dir, file, buf, size);
	n = read_ours(d, file, buf, size);
	if (n < 0 && errno == ENOENT)
		return read_file(dir, file, buf, size);
	return n >= 0 && (size_t)n >= size ? urnic_minus(EOVERFLOW) : n;
}
