package main

import (
	"encoding/json"
	"errors"
	"fmt"
)

// parseIperf reads what the client of iperf3 -J prints. What counts is what the
// server has received.
func parseIperf(out []byte) (reading, error) {
	var doc struct {
		Error string `json:"error"`
		End   struct {
			Received struct {
				Seconds       float64 `json:"seconds"`
				Bytes         float64 `json:"bytes"`
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return reading{}, fmt.Errorf("iperf3 printed no JSON: %w: %s", err, tail(out))
	}
	if doc.Error != "" {
		return reading{}, errors.New("iperf3: " + doc.Error)
	}
	got := doc.End.Received
	if got.BitsPerSecond <= 0 || got.Bytes <= 0 {
		return reading{}, fmt.Errorf("iperf3 says that nothing was received: %s", tail(out))
	}
	return reading{BytesPerSecond: got.BitsPerSecond / 8, Seconds: got.Seconds}, nil
}
