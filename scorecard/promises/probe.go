package promises

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

// probe is the overlap probe of an application that may have only one running program at a time.
// Its programs are witnesses, which write their records to a folder.
type probe struct {
	Name   string
	Folder *observer.Folder
}

// probe opens the folder of an application.
func (c *Cluster) probe(name string) *probe {
	folder, err := observer.Open(filepath.Join(c.Shared, c.Namespace, name))
	c.check(err)
	p := &probe{Name: name, Folder: folder}
	c.addProbe(p)
	return p
}

// addProbe adds a probe to those of this promise. Its programs must not overlap.
func (c *Cluster) addProbe(p *probe) { *c.witnesses = append(*c.witnesses, p) }

// probes returns all probes of this promise.
func (c *Cluster) probes() []*probe { return *c.witnesses }

// witnessed wraps a promise to fail also if two programs ran at the same time, in addition to any
// other failure.
func witnessed(run func(context.Context, *Cluster)) func(context.Context, *Cluster) {
	return func(ctx context.Context, c *Cluster) {
		err := c.Kept(func(own *Cluster) { run(ctx, own) })
		c.check(errors.Join(err, c.overlaps()))
		c.Expect(c.probes()).NotTo(BeEmpty(), "no overlap probe was queried")
	}
}

// overlaps closes all probes of this promise, and returns what they have found.
func (c *Cluster) overlaps() (err error) {
	for _, p := range c.probes() {
		p.Folder.Close()
		err = errors.Join(err, p.faultless())
	}
	return err
}

// faultless returns an error for each pair of programs that ran at the same time.
func (p *probe) faultless() error {
	runs, err := p.Folder.Runs()
	if err != nil {
		return fmt.Errorf("the overlap probe of %s: %w", p.Name, err)
	}
	for _, o := range testimony.Overlaps(runs, testimony.Now()) {
		err = errors.Join(err, fmt.Errorf("in %s the programs of %s and %s ran together for %s: %s",
			p.Name, o.First.Pod, o.Second.Pod, o.Length, story(runs)))
	}
	return err
}

// story formats runs as text, with times relative to the start of the first run.
func story(runs []testimony.Run) string {
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
