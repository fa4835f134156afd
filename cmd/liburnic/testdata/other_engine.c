/* An engine of another build: all of its functions are there, and open says that it is another's. */
#include <errno.h>

#include "../engine.h"

#define STUB(result, name, params)                                                                                     \
	result urnic_engine_##name params                                                                              \
	{                                                                                                              \
		return (result)ELIBBAD;                                                                                \
	}
URNIC_ENGINE(STUB)
