package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"urnic/pd"
	"urnic/rnic"
)

func newDevinfoCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devinfo",
		Short: "Show the attributes, limits and capabilities of the device",
		Long: `Devinfo shows the capabilities and limits of the emulated RNIC, as ibv_devinfo -v does for
hardware: the limits of each object, of the device, and of each protection domain. They are
the defaults; a program can change them in its configuration.`,
		Example: `  urnic devinfo
  urnic devinfo --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			dev, err := rnic.Open(rnic.Config{})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, dev.Close()) }()
			if asJSON {
				return writeDevinfoJSON(cmd.OutOrStdout(), dev.Attr())
			}
			return writeDevinfo(cmd.OutOrStdout(), dev.Attr())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// writeDevinfoJSON writes the attributes with the limits by their names.
func writeDevinfoJSON(w io.Writer, a rnic.Attr) error {
	type limit struct {
		Device uint64 `json:"device"`
		Domain uint64 `json:"domain"`
	}
	limits := map[string]limit{}
	for r := range pd.Resource(pd.NumResources) {
		limits[r.String()] = limit{a.Limits[r], a.DomainLimits[r]}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Format string `json:"format"`
		rnic.Attr
		Limits map[string]limit `json:"limits"`
	}{"urnic-devinfo/1", a, limits})
}

func writeDevinfo(w io.Writer, a rnic.Attr) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(t, "\t%s\t%v\n", name, value) }
	fmt.Fprintf(t, "%s\n", a.Name)
	row("transport", "iWARP (RDMAP/DDP/MPA/TCP)")
	row("MPA revisions", "1, 2")
	for _, c := range []struct {
		name string
		has  bool
	}{
		{"atomics (FetchAdd, CmpSwap)", a.Atomics},
		{"immediate data", a.Immediate},
		{"memory windows (types 1, 2)", a.Windows},
		{"fast registration", a.FastRegister},
		{"zero-based regions", a.ZeroBased},
		{"shared receive queues", a.SRQ},
	} {
		row(c.name, yesNo(c.has))
	}
	row("max_sge", a.MaxSGE)
	row("max_sge_rd", a.MaxReadSGE)
	row("max_inline", a.MaxInline)
	row("max_qp_wr", a.MaxWR)
	row("max_cqe", a.MaxCQE)
	row("max_qp_rd_atom (IRD)", a.MaxIRD)
	row("max_qp_init_rd_atom (ORD)", a.MaxORD)
	row("max_msg_sz", a.MaxMessage)
	row("private data bytes", a.PrivateData)
	row("stream buffer bytes", a.StreamBuffers)
	fmt.Fprintf(t, "\tlimits\tdevice\teach PD\n")
	for r := range pd.Resource(pd.NumResources) {
		fmt.Fprintf(t, "\t  %v\t%d\t%d\n", r, a.Limits[r], a.DomainLimits[r])
	}
	return t.Flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
