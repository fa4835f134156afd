/* Queue pairs by number: a hash table of lists. */
#include <stdlib.h>

#include "cm.h"

struct entry {
	struct entry *next;
	struct ibv_qp *qp;
};

static struct entry *table[1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry **list_of(uint32_t qpn)
{
	return &table[qpn % (sizeof(table) / sizeof(table[0]))];
}

int urnic_qpn_add(struct ibv_qp *qp)
{
	struct entry *e = malloc(sizeof(*e)), **list = list_of(qp->qp_num);

	if (!e)
		return ENOMEM;
	e->qp = qp;
	pthread_mutex_lock(&lock);
	e->next = *list;
	*list = e;
	pthread_mutex_unlock(&lock);
	return 0;
}

void urnic_qpn_remove(struct ibv_qp *qp)
{
	struct entry **at, *e;

	pthread_mutex_lock(&lock);
	for (at = list_of(qp->qp_num); *at && (*at)->qp != qp; at = &(*at)->next)
		;
	e = *at;
	if (e)
		*at = e->next;
	pthread_mutex_unlock(&lock);
	free(e);
}

uint32_t urnic_qpn_handle(uint32_t qpn)
{
	uint32_t handle = 0;
	struct entry *e;

	pthread_mutex_lock(&lock);
	for (e = *list_of(qpn); e && !handle; e = e->next)
		if (e->qp->qp_num == qpn)
			handle = e->qp->handle;
	pthread_mutex_unlock(&lock);
	return handle;
}
