package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/etcd/gateway"
	"github.com/stateful-operator/stateful-operator/agent/membership"
)

// Primary starts a member while others run. If the cluster does not know the data of this member, the
// member joins as a new one.
func (s *Server) Primary(ctx context.Context, primaries []string) error {
	m, runs, err := s.prepare(ctx)
	if err != nil || runs {
		return err
	}
	hosts := s.Others(primaries)
	peer, cluster, err := s.find(ctx, hosts)
	switch {
	case err != nil && m.IsMember():
		s.log.Printf("starts with its own data, because no other member can be asked: %v", err)
		return s.launch(ctx)
	case err != nil:
		return err
	}
	defer peer.Close()
	other := s.record().CheckCluster(m, cluster.ID, s.Name)
	switch {
	case other != nil:
		return other
	case m.IsMember() && cluster.Member(m.Member) != nil:
		if err := s.launch(ctx); err != nil || m.State == membership.Member {
			return err
		}
		return s.finish(ctx, hosts, m)
	}
	return s.join(ctx, hosts, peer, cluster)
}

// find returns a client of the first of these members that has a majority, and the cluster.
func (s *Server) find(ctx context.Context, hosts []string) (*gateway.Client, gateway.Cluster, error) {
	err := driver.ErrNoOther
	for _, host := range hosts {
		client, clientErr := s.client(host)
		if clientErr != nil {
			return nil, gateway.Cluster{}, clientErr
		}
		cluster, memberErr := client.Members(ctx)
		for gateway.Is(memberErr, "leader changed") && driver.Pause(ctx) {
			cluster, memberErr = client.Members(ctx)
		}
		if memberErr == nil {
			return client, cluster, nil
		}
		client.Close()
		err = fmt.Errorf("%s: %w", host, memberErr)
	}
	return nil, gateway.Cluster{}, err
}

// own returns the entries of this member, also of earlier volumes.
func (s *Server) own(members []gateway.Member) []gateway.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m gateway.Member) bool {
		return m.Name != s.Name && !slices.Contains(m.PeerURLs, s.peerURL())
	})
}

// join adds this member to the cluster, without its former data.
func (s *Server) join(ctx context.Context, hosts []string, peer *gateway.Client, cluster gateway.Cluster) error {
	if err := s.record().Write(membership.Mark{State: membership.Joining, Cluster: cluster.ID}); err != nil {
		return err
	}
	if err := s.discard(); err != nil {
		return err
	}
	if err := s.forget(ctx, peer, cluster); err != nil {
		return err
	}
	added, all, err := s.add(ctx, peer, cluster)
	if err != nil {
		return fmt.Errorf("add this member: %w", err)
	}
	var initial []string
	for _, m := range all {
		name := m.Name
		switch {
		case m.ID == added.ID:
			name = s.Name
		case name == "":
			name = m.ID // it was not started yet
		}
		for _, address := range m.PeerURLs {
			initial = append(initial, name+"="+address)
		}
	}
	if err := s.launch(ctx, "--initial-cluster="+strings.Join(initial, ",")); err != nil {
		return errors.Join(err, peer.Remove(ctx, added.ID))
	}
	m := membership.Mark{State: membership.Promoting, Cluster: cluster.ID, Member: added.ID}
	if err := s.record().Write(m); err != nil {
		return s.undoStart(err)
	}
	return s.finish(ctx, hosts, m)
}

// add adds this member as a learner. Learners that were never started are removed, because their number is
// limited.
func (s *Server) add(ctx context.Context, peer *gateway.Client, cluster gateway.Cluster) (added gateway.Member, all []gateway.Member, err error) {
	add := func() (err error) {
		added, all, err = peer.AddLearner(ctx, s.peerURL())
		return err
	}
	// The ID of a member depends on its address and the second. The ID of a removed one is not found.
	const removed = "member not found"
	err = change(ctx, add, unhealthy, removed)
	if !gateway.Is(err, "too many learner") {
		return added, all, err
	}
	for _, m := range cluster.Members {
		if !m.IsLearner || m.Name != "" {
			continue
		}
		if err := peer.Remove(ctx, m.ID); err != nil && !gateway.Is(err, removed) {
			return added, all, fmt.Errorf("remove learner %s, which was never started: %w", m.ID, err)
		}
	}
	err = change(ctx, add, unhealthy, removed)
	return added, all, err
}

// progressLimit is the time without a leader after which a start fails, because a set runs one start at a
// time, and the next one may be that of the leader.
const progressLimit = 20 * time.Second

// promoteEvery is the interval in which the cluster is asked to promote a member. Each request is
// authenticated, which takes CPU and a write.
const promoteEvery = 500 * time.Millisecond

// finish waits until this member has all data, and makes it vote. If that is interrupted, the copy stays
// one of a member, because it may vote already.
func (s *Server) finish(ctx context.Context, hosts []string, m membership.Mark) error {
	progress := time.Now()
	for {
		done, err := s.promote(ctx, hosts, m.Member)
		switch {
		case done:
			return s.record().Write(membership.Mark{State: membership.Member, Cluster: m.Cluster, Member: m.Member})
		case gateway.Is(err, "in sync with leader"):
			progress = time.Now()
		case errors.Is(err, errNotListed), time.Since(progress) > progressLimit:
			return s.undoStart(err)
		}
		if running, runErr := servers.Running(); runErr != nil || !running {
			return errors.Join(errors.New("the server has ended: see the log of the container"), runErr)
		}
		if !driver.PauseFor(ctx, promoteEvery) {
			return s.undoStart(err)
		}
	}
}

var errNotListed = errors.New("the cluster does not list this member")

// promote makes this member vote, and reports whether it does. Only the leader promotes.
func (s *Server) promote(ctx context.Context, hosts []string, id string) (done bool, err error) {
	peer, cluster, err := s.find(ctx, hosts)
	if err != nil {
		return false, err
	}
	defer peer.Close()
	m := cluster.Member(id)
	if m == nil {
		return false, errNotListed
	}
	if !m.IsLearner {
		return true, nil
	}
	leader, err := s.leader(ctx, peer, cluster)
	if err != nil {
		return false, err
	}
	defer leader.Close()
	return false, leader.Promote(ctx, id) // the next list has the result
}

// leader returns a client of the leader.
func (s *Server) leader(ctx context.Context, peer *gateway.Client, cluster gateway.Cluster) (*gateway.Client, error) {
	state, err := peer.State(ctx)
	if err != nil {
		return nil, err
	}
	if m := cluster.Member(state.Leader); m != nil {
		for _, text := range m.ClientURLs {
			if found, err := url.Parse(text); err == nil {
				return s.client(found.Hostname())
			}
		}
	}
	return nil, errors.New("the cluster has no leader")
}

// changeLimit is the time in which the cluster must accept a change of its members. All members must have
// been connected for 5 s before.
const changeLimit = 30 * time.Second

// unhealthy is in the error of a change while a member is not connected.
const unhealthy = "unhealthy cluster"

// change changes the members, and retries after these errors. It fails soon, because a set runs one start
// at a time.
func change(ctx context.Context, f func() error, transient ...string) error {
	deadline := time.Now().Add(changeLimit)
	for {
		err := f()
		again := slices.ContainsFunc(transient, func(part string) bool { return gateway.Is(err, part) })
		if !again || time.Now().After(deadline) || !driver.Pause(ctx) {
			return err
		}
	}
}

// forget removes the entries of this member from the cluster.
func (s *Server) forget(ctx context.Context, peer *gateway.Client, cluster gateway.Cluster) error {
	for _, m := range s.own(cluster.Members) {
		err := change(ctx, func() error { return peer.Remove(ctx, m.ID) }, unhealthy)
		if err != nil && !gateway.Is(err, "member not found") {
			return fmt.Errorf("remove the former entry %s of this member: %w", m.ID, err)
		}
	}
	return nil
}

// Leave removes this member from the cluster, and stops it.
func (s *Server) Leave(ctx context.Context, primaries []string) error {
	m, err := s.record().Read()
	if err != nil {
		return err
	}
	peer, cluster, err := s.find(ctx, s.Others(primaries))
	if err != nil {
		return err
	}
	defer peer.Close()
	if err := s.forget(ctx, peer, cluster); err != nil {
		return err
	}
	if m.State != "" {
		if err := s.record().Write(membership.Mark{State: membership.Left, Cluster: cluster.ID}); err != nil {
			return err
		}
	}
	return s.Stop(ctx) // etcd would also end a removed member, after a second
}

// Maintain completes a join whose command has died.
func (s *Server) Maintain(ctx context.Context) error {
	m, err := s.record().Read()
	if err != nil || m.State != membership.Promoting {
		return err
	}
	if running, err := servers.Running(); err != nil || !running {
		return err
	}
	done, err := s.promote(ctx, []string{s.config.PrimaryHost}, m.Member)
	if err != nil || !done {
		return err
	}
	return s.record().Write(membership.Mark{State: membership.Member, Cluster: m.Cluster, Member: m.Member})
}
