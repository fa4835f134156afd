/* Opens a library that only its RUNPATH leads to. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	if (dlopen("libonlyhere.so", RTLD_NOW))
		return 0;
	fprintf(stderr, "%s\n", dlerror());
	return 1;
}
