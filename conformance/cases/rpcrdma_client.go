package cases

import "urnic/conformance"

func rpcClient() []conformance.Case { return nil }

func rpcClientDiscards() []conformance.Case { return nil }
