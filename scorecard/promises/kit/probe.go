package kit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Probe is the overlap probe of an application that may have only one running program at a time.
// Its programs are witnesses, which write their records to a folder.
type Probe struct {
	Name   string
	Folder *observer.Folder
}

// Probe opens the folder of an application.
func (c *Cluster) Probe(name string) *Probe {
	folder, err := observer.Open(filepath.Join(c.Shared, c.Namespace, name))
	c.Check(err)
	p := &Probe{Name: name, Folder: folder}
	c.AddProbe(p)
	return p
}

// AddProbe adds a probe to those of this promise. Its programs must not overlap.
func (c *Cluster) AddProbe(p *Probe) { *c.witnesses = append(*c.witnesses, p) }

// Probes returns all probes of this promise.
func (c *Cluster) Probes() []*Probe { return *c.witnesses }

// Witnessed wraps a promise to fail also if two programs ran at the same time, in addition to any
// other failure.
func Witnessed(run func(context.Context, *Cluster)) func(context.Context, *Cluster) {
	return func(ctx context.Context, c *Cluster) {
		err := c.Kept(func(own *Cluster) { run(ctx, own) })
		c.Check(errors.Join(err, c.Overlaps()))
		c.Expect(c.Probes()).NotTo(BeEmpty(), "no overlap probe was queried")
	}
}

// Overlaps closes all probes of this promise, and returns an error if programs overlapped.
func (c *Cluster) Overlaps() (err error) {
	for _, p := range c.Probes() {
		p.Folder.Close()
		err = errors.Join(err, p.faultless())
	}
	return err
}

// faultless returns an error for each pair of programs that ran at the same time.
func (p *Probe) faultless() error {
	runs, err := p.Folder.Runs()
	if err != nil {
		return fmt.Errorf("the overlap probe of %s: %w", p.Name, err)
	}
	for _, o := range testimony.Overlaps(runs, testimony.Now()) {
		err = errors.Join(err, fmt.Errorf("in %s the programs of %s and %s ran together for %s: %s",
			p.Name, o.First.Pod, o.Second.Pod, o.Length, Story(runs)))
	}
	return err
}

// Story formats runs as text, with times relative to the start of the first run.
func Story(runs []testimony.Run) string {
	words := make([]string, 0, len(runs))
	for _, r := range runs {
		since := func(at int64) string { return time.Duration(at - runs[0].Start).Round(time.Millisecond).String() }
		end := "now"
		if !r.Alive() {
			end = since(r.End)
		}
		words = append(words, fmt.Sprintf("%s on %s from %s to %s", r.Pod, r.Node, since(r.Start), end))
	}
	if most := 8; len(words) > most {
		words = append([]string{"…"}, words[len(words)-most:]...)
	}
	return strings.Join(words, ", ")
}
