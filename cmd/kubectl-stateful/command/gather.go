package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/gather"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

func (p *Plugin) gather() *cobra.Command {
	file, o := "", gather.Options{Operator: "stateful-operator-system"}
	c := &cobra.Command{
		Use: "gather", Short: "Collect diagnostic data in a file",
		Long: "Collect the objects of the four kinds in a namespace, pods, claims, events and related objects, Nodes,\n" +
			"and the operator's pods and logs into a .tar.gz. Secrets and ConfigMaps are never read. The values of\n" +
			"environment variables and HTTP headers are omitted, because they often contain passwords; their names are kept.",
		Example: "  kubectl stateful gather --namespace shop\n  kubectl stateful gather --file=- | tar tz",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.Connect()
			if err != nil {
				return err
			}
			o.Namespace, o.Now = s.Namespace, p.Now()
			if file == "" {
				file = gather.FileName(o.Namespace, o.Now) + ".tar.gz"
			}
			var unread []string
			if file == "-" {
				unread, err = gather.Write(c.Context(), p.Streams.Out, s, s.Logs, o)
			} else {
				err = writeFile(file, func(w io.Writer) (err error) {
					unread, err = gather.Write(c.Context(), w, s, s.Logs, o)
					return err
				})
			}
			for _, text := range unread {
				p.warn("cannot be read: %s", tree.Printable(text))
			}
			if err == nil && file != "-" {
				p.say("%s", file)
			}
			return err
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "The file to write; - is standard output. Default: stateful-<namespace>-<time>.tar.gz.")
	c.Flags().StringVar(&o.Operator, "operator-namespace", o.Operator, "The namespace of the operator.")
	c.Flags().BoolVar(&o.KeepEnv, "keep-env", false, "Keep the values of environment variables.")
	return c
}

// writeFile writes a new file that only its owner may read. It removes an incomplete file.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(filepath.Clean(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the earlier error is reported
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
