package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A program is one of those that are compared.
type program struct {
	name    string
	binary  string
	pack    string   // of the distribution; "" for urnic
	version []string // the command that tells it
	find    func(out []byte) string
}

// The programs, ours first. The binary of urnic is told on the command line.
var (
	urnic     = &program{name: "urnic", binary: "bin/urnic"}
	ucx       = &program{"UCX", "ucx_perftest", "ucx-utils", []string{"ucx_info", "-v"}, ucxVersion}
	libfabric = &program{"libfabric", "fi_pingpong", "libfabric-bin", []string{"fi_info", "--version"}, libfabricVersion}
	iperf     = &program{"iperf3", "iperf3", "iperf3", []string{"iperf3", "--version"}, iperfVersion}

	// Those that run on urnic, by liburnic.
	perftest = &program{"perftest", "ib_write_bw", "perftest", []string{"dpkg-query", "-W", "perftest"}, perftestVersion}
	rdmacore = &program{"rdma-core", "ibv_devices", "ibverbs-utils", []string{"dpkg-query", "-W", "ibverbs-utils"}, rdmacoreVersion}

	peers = []*program{ucx, libfabric, iperf, perftest, rdmacore}
)

// ucxVersion finds "1.13.1" in "# Version 1.13.1".
func ucxVersion(out []byte) string { return after(out, "# Version ") }

// libfabricVersion finds "1.17.0" in "libfabric: 1.17.0".
func libfabricVersion(out []byte) string { return after(out, "libfabric: ") }

// iperfVersion finds "3.12" in "iperf 3.12 (cJSON 1.7.15)".
func iperfVersion(out []byte) string { return after(out, "iperf ") }

// perftestVersion finds "4.5+0.17-1" in "perftest\t4.5+0.17-1".
func perftestVersion(out []byte) string { return after(out, "perftest") }

// rdmacoreVersion finds "44.0-2" in "ibverbs-utils\t44.0-2".
func rdmacoreVersion(out []byte) string { return after(out, "ibverbs-utils") }

// after returns the word that follows the first mention of a text.
func after(out []byte, text string) string {
	_, rest, found := strings.Cut(string(out), text)
	if words := strings.Fields(rest); found && len(words) > 0 {
		return words[0]
	}
	return ""
}

// ask returns the version of a program that is there.
func (p *program) ask(ctx context.Context) (string, error) {
	if _, err := exec.LookPath(p.binary); err != nil {
		return "", fmt.Errorf("%s of %s is missing: %w", p.binary, p.name, err)
	}
	out, err := exec.CommandContext(ctx, p.version[0], p.version[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(p.version, " "), err, tail(out))
	}
	v := p.find(out)
	if v == "" {
		return "", fmt.Errorf("%s does not tell the version: %s", strings.Join(p.version, " "), tail(out))
	}
	return v, nil
}

// install gets the packages of the programs that are missing from the
// distribution.
func install(ctx context.Context, log io.Writer, wanted []*program) error {
	var packs []string
	for _, p := range wanted {
		if _, err := exec.LookPath(p.binary); err != nil && p.pack != "" {
			packs = append(packs, p.pack)
		}
	}
	if len(packs) == 0 {
		return nil
	}
	args := append([]string{"install", "-y", "--no-install-recommends"}, packs...)
	by := "apt-get " + strings.Join(args, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing packages: %s (on Debian: %s)", strings.Join(packs, ", "), by)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("missing packages: as root, run %s", by)
	}
	apt := func(args ...string) error {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(slices.Clone(os.Environ()), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = log, log
		return cmd.Run()
	}
	err := apt(args...)
	if err == nil {
		return nil
	}
	if err := errors.Join(apt("update"), apt(args...)); err != nil {
		return fmt.Errorf("%s: %w", by, err)
	}
	return nil
}
