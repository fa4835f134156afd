package rnic_test

import (
	"context"
	"hash/fnv"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/rdpllp"
)

// overMPA are the tests that are not run over a lower layer that changes the order of
// segments, and why.
var overMPA = because(map[string][]string{
	"shares of requests, which a layer without delay leaves to the scheduler: it has layers of its own": {
		"TestNeitherResponsesNorRequestsStarve",
	},
	"answers that come late, which layers without delay leave to the scheduler": {
		"TestStoppedQueueDrains",
	},
	"connections whose MPA Request is not in, or comes slowly; hosts and descriptors of TCP": {
		"TestArrivalHasAMomentForItsRequest",
		"TestGarbageOnThePortIsDroppedAtOnce",
		"TestHostsOfOneNetworkCountAsOne",
		"TestListenerClosesWhileAConnectionWaitsForItsTurn",
		"TestOldestArrivalMakesRoom",
		"TestOneHostDoesNotFillTheQueueOfRequests",
		"TestPeersThatComeToNothingAreLogged",
		"TestRequestsOfAClosedListenerAreDropped",
		"TestSilentPeerIsDroppedAfterTheTimeLimit",
		"TestStrangersDoNotKeepTheLastDescriptors",
		"TestStrangersHoldUpNobody",
		"TestStrangersPushOutTheirOwn",
	},
	"frames of MPA start-up: revisions, CRCs, markers, their private data and time limits": {
		"TestAnswerWithMoreThanFitsLeavesTheRequestToBeAnswered",
		"TestCQOverflowEndsQueuePairsInStartup",
		"TestCRCAndMarkersAreUsedAsEitherSideWants",
		"TestConnectionUsesTheMPAConfigurationOfItsDevice",
		"TestDepthsAreNegotiated",
		"TestInitiatorIsPatientWithTheReplyOnlySoLong",
		"TestInsufficientIRDSendsTerminate",
		"TestLocalStartupErrorSendsTerminate",
		"TestPrivateDataReachesTheOtherULP",
		"TestResponderThatKnowsOnlyRevision1IsAskedAgain",
		"TestStartupCanBeEndedAtEveryPoint",
		"TestTerminateOfAStartupTakesNoLongerThanItMay",
		"TestTerminateThatCannotBeSentIsNotWaitedFor",
	},
	"the ready-to-receive indication (RFC 6581 §9.2), which a layer in which either side may send first has no use for": {
		"TestNoCommonRTRSendsTerminate",
		"TestOtherMessageInPlaceOfTheRTRTerminates",
		"TestRTRIsTheFirstFPDU",
		"TestRTRKindsBetweenTwoDevices",
		"TestReadRTRIsTakenWithoutInboundReads",
		"TestReadThatIsAnRTRCountsInTheMSN",
		"TestResponderIsPatientWithTheRTROnlySoLong",
	},
	"octets of MPA: FPDUs that are cut or damaged": {
		"TestAttackCostsThatStreamOnly",
		"TestCRCErrorTerminatesWithoutHeaders",
		"TestFINInsideAnFPDUIsTheLossOfTheConnection",
		"TestFirstErrorIsTheOneThatIsTold",
		"TestHostilePeersOfManyQueuePairsAtOnce",
		"TestMarkerErrorTerminatesWithoutHeaders",
		"TestPeerThatDiesAtAnyOctetCostsThatStreamOnly",
		"TestResponderWhoseFirstFPDUIsBadMayNotSendATerminate",
		"TestSegmentAfterOurFINIsABadClose",
		"TestTerminateReachesAPeerThatStillSends",
	},
	"a Network that fails, or is watched, which Config.LowerLayer takes the place of": {
		"TestAbortThatMeetsTheEndOfThePeersHalf",
		"TestConnectionsOverTheCallersOwnSockets",
		"TestDeviceKeepsNothingOfRequestsThatAreOver",
		"TestEndOfAStreamRaisesAnEvent",
		"TestErrorsOfAcceptAreLoggedOncePerRow",
		"TestErrorsOfClosingSocketsArePassedOn",
		"TestListenerOutlivesErrorsOfTheNetwork",
		"TestReplyLeavesWhenTheConnectionIsNotWatched",
		"TestRequestIsAnsweredOnce",
		"TestStartupLeavesNothingWithItsContext",
		"TestStreamThatCannotBeHalfClosedIsReset",
		"TestStreamThatCannotSendEndsInTime",
		"TestStreamThatCannotSendIsLost",
	},
	"a network with latency or faults": {
		"TestReadsInFlightStayWithinTheDepth",
		"TestTerminatesThatCrossEndTheStreamOnce",
		"TestAtomicCompletesWhenItsResponseIsDelivered",
		"TestLocalFenceHoldsBackUntilAllIsComplete",
		"TestMemoryGivenUpAfterPostingIsALocalProtectionError",
		"TestReadCompletesWhenItsResponseIsDelivered",
	},
	"a Responder that may not send before the Initiator has (RFC 5044 §7.1.2)": {
		"TestDisconnectTellsTheEndOfItsOwnStream",
		"TestEachRequestCompletesOnce",
		"TestResponseBeforeItsRequestHasLeftIsOneThatWasAskedFor",
	},
	"how much the socket of TCP takes": {
		"TestErrorOfAnEarlyCloseCountsWhatIsOutstanding",
		"TestBegunReceiveOfAnSRQIsFlushed",
		"TestDisconnectWaitsForSendsInFlight",
		"TestPeerThatClosesAndDoesNotReadIsResetAfterTheCloseTimeout",
		"TestPeerThatClosesBeforeTheEndOfAResponseGetsATerminate",
		"TestPostSendDoesNotWaitForAPeerThatDoesNotRead",
		"TestSendCompletesOnlyWhenDDPHasCompletedIt",
		"TestSendsThatCannotLeaveWhenThePeerClosesAreFlushed",
		"TestWhoBeginsToPollTransmitsWhatIsLeft",
	},
	"stream buffers, of which the other layer keeps none": {
		"TestEndedStreamKeepsNoBuffers",
		"TestStreamBuffersAreBounded",
		"TestStreamBuffersOfADomainAreBounded",
		"TestStreamThatMovesOutlivesThoseThatStall",
		"TestStreamsMayStallTheLongerTheLessTheLimitIsExceeded",
	},
	"recordings, which are of MPA": {
		"TestConnectThatFailsGivesUpItsEndpointsInTheRecording",
		"TestRecordingShowsHowARejectedConnectionEnds",
		"TestRecordingShowsHowAStreamEnds",
		"TestRequestThatFailsGivesUpItsEndpointsInTheRecording",
		"TestStartupsThatComeToNothingAreRecorded",
	},
	"when the TCP connection of a Request ends, and how": {
		"TestPeerThatGoesBeforeItIsWatchedIsPassedOver",
		"TestRejectedConnectionStaysOpenUntilThePeerCloses",
		"TestRejectedConnectionsAreBounded",
		"TestRequestWhosePeerHasGoneCannotBeAnswered",
		"TestWaitingFindsThatThePeerHasGone",
	},
	"its requests read and write the same memory at once, which only the locks of simnet hide from the race detector": {
		"TestCompletionsFollowTheOrderSubmitted",
	},
	"it counts goroutines, of which the peer that is played by hand has one while it connects": {
		"TestRequestAnsweredAtOnceHasNoWatcher",
	},
	"it counts accesses to memory, one for each segment": {
		"TestCountersCountEachMessage",
		"TestTraceSeesEachMessageOnBothSides",
	},
	"nothing is placed before its turn, which is so in a layer that keeps the order only": {
		"TestMessageWhoseCompletionFindsNoPlaceIsTheLast",
		"TestMessagesAfterATerminateAreDropped",
		"TestPeerOutOfTurnTakesNothingFromAnSRQ",
		"TestRegionIsUntouchedAfterThePeerInvalidatesIt",
	},
	"QPAttr.PairImmediate: two messages share a receive, which only order tells": {
		"TestSendWithImmediateCompletesOneReceive",
		"TestSendWithImmediateIsFencedAsOne",
		"TestSendWithImmediateOverAnSRQ",
	},
	"QPAttr.RecvWait: a message that is declined holds up those before it": {
		"TestEachMessageWaitsAnew",
		"TestMessageWaitsForAReceive",
		"TestMessagesOfSeveralStreamsWaitForOneReceive",
		"TestPeerBeyondItsShareDoesNotWait",
		"TestWaitForAReceiveIsLoggedOnce",
	},
	"memory is taken from under a stream whose segments lie in a known order": {
		"TestReadFailsOneOfWhoseSinksIsLost",
		"TestReceiveFailsWhoseMemoryIsLost",
		"TestRequestFailsWhoseSinkIsLost",
	},
})

// notOverRDP are those of the others that are not run over RDP, and why.
var notOverRDP = because(map[string][]string{
	"what comes of two messages, one of them in error, of which either may arrive first": {
		"TestCQThatOverflowsInAGracefulCloseEndsTheQueuePair",
		"TestEmptySRQEndsTheStreamThatNeedsAReceive",
		"TestNothingCountsAfterTheFirstError",
		"TestPeerWaitsForTheLastReceiveOfItsShare",
		"TestSRQDetectsAPeerTakingMoreThanItsShare",
	},
	"how much is under way while the peer reads nothing: RDP's window is counted in segments": {
		"TestContextEndsADisconnectFromAPeerThatDoesNotReadAPlainStream",
		"TestMemoryOfARequestIsReadNoMoreOnceItsRegionIsClosed",
		"TestPeerThatEndsItsHalfGetsWhatAPlainStreamHasTaken",
		"TestReadsBeyondTheIRDTerminate",
	},
	"a peer that takes nothing for hours: RDP gives up after ten minutes": {
		"TestPeerThatStallsHoldsUpThatStreamOnly",
		"TestPeerThatTakesNothingHoldsUpThatStreamOnly",
	},
	"a reset that destroys what has arrived: RDP keeps what it has accepted": {
		"TestContextEndsTheWaitOfTheTerminateVerb",
		"TestContextThatEndsDuringDisconnectResetsTheConnection",
		"TestPeerThatNeverClosesIsResetAfterTheCloseTimeout",
	},
})

// because returns the reason for each test of a group.
func because(groups map[string][]string) map[string]string {
	reasons := map[string]string{}
	for reason, tests := range groups {
		for _, t := range tests {
			reasons[t] = reason
		}
	}
	return reasons
}

// The list names tests that there are, and no others.
func TestTestsThatAreNotReorderedExist(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	listed := maps.Clone(overMPA)
	maps.Copy(listed, notOverRDP)
	for name, reason := range listed {
		if !strings.Contains(all.String(), "\nfunc "+name+"(t *testing.T) {") || reason == "" {
			t.Errorf("%s is no test of this package", name)
		}
	}
}

// reordered runs f over two lower layers that change the order of segments, and can be polled, unless the test is in
// overMPA: one in memory that does nothing else, and DDP over RDP on a network in which segments overtake each other. The
// segments are short, so that most messages are several.
func reordered(t *testing.T, f func(t *testing.T, lower rnic.LowerLayer)) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if _, ok := overMPA[name]; ok {
		return
	}
	seed := func(t *testing.T) uint64 {
		h := fnv.New64()
		_, _ = h.Write([]byte(t.Name()))
		return h.Sum64()
	}
	t.Run("reorders", func(t *testing.T) {
		f(t, &rnictest.Reordering{Seed: seed(t), Window: 8, Polls: true, MULPDU: 256})
	})
	if _, ok := notOverRDP[name]; ok {
		return
	}
	t.Run("rdp", func(t *testing.T) {
		n := rdp.NewNetwork(seed(t), rdp.Faults{Reorder: 0.5})
		f(t, rdpllp.New(rdpllp.Config{
			MaxSegment: 562, AckDelay: -1, // as much private data as there may be
			Carrier: func(_ context.Context, addr netip.AddrPort) (rdp.Carrier, error) { return n.Carrier(addr) },
		}))
	})
}
