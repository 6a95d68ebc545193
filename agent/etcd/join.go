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
)

// Primary starts a member while others run. If the cluster does not know the data of this member, the
// member joins as a new one.
func (s *Server) Primary(ctx context.Context, primaries []string) error {
	m, runs, err := s.prepare(ctx)
	if err != nil || runs {
		return err
	}
	peer, cluster, err := s.find(ctx, primaries)
	switch {
	case err != nil && m.State == stateMember:
		s.log.Printf("starts with its own data, because no other member has a majority: %v", err)
		return s.launch(ctx)
	case err != nil:
		return err
	case m.Cluster != "" && m.Cluster != cluster.ID:
		return driver.Errorf(driver.NotInstalled, "%s has data of cluster %s, and the other members run cluster %s: to discard the data, delete the claim of %s",
			s.folder(), m.Cluster, cluster.ID, s.Name)
	case m.State == stateMember && slices.ContainsFunc(cluster.Members, func(o gateway.Member) bool { return o.ID == m.Member }):
		return s.launch(ctx)
	}
	return s.join(ctx, peer, cluster)
}

// find returns a client of the first of these members that has a majority, and the cluster.
func (s *Server) find(ctx context.Context, primaries []string) (*gateway.Client, gateway.Cluster, error) {
	err := errors.New("no other primary was named")
	for _, host := range primaries {
		if name, _, _ := strings.Cut(host, "."); name == s.Name {
			continue
		}
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
func (s *Server) join(ctx context.Context, peer *gateway.Client, cluster gateway.Cluster) error {
	if err := s.setMark(mark{State: stateJoining, Cluster: cluster.ID}); err != nil {
		return err
	}
	if err := s.discard(); err != nil {
		return err
	}
	if err := s.forget(ctx, peer, cluster); err != nil {
		return err
	}
	var added gateway.Member
	var all []gateway.Member
	err := change(ctx, func() (err error) {
		added, all, err = peer.AddLearner(ctx, s.peerURL())
		return err
	})
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
	if err := s.launch(ctx, "--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-state=existing"); err != nil {
		return err
	}
	err = driver.WaitUntil(ctx, s.running, func() error {
		leader, err := s.leader(ctx, peer)
		if err == nil {
			err = leader.Promote(ctx, added.ID)
		}
		if gateway.Is(err, "not a learner") {
			return nil
		}
		return err
	})
	if err == nil {
		err = s.complete(ctx)
	}
	return s.undoStart(err)
}

// leader returns a client of the leader.
func (s *Server) leader(ctx context.Context, peer *gateway.Client) (*gateway.Client, error) {
	state, err := peer.State(ctx)
	if err != nil {
		return nil, err
	}
	cluster, err := peer.Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range cluster.Members {
		if m.ID != state.Leader {
			continue
		}
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

// change changes the members. While a member is not connected, the cluster refuses that, and this command
// fails soon, because a set runs one start at a time.
func change(ctx context.Context, f func() error) error {
	deadline := time.Now().Add(changeLimit)
	for {
		err := f()
		if !gateway.Is(err, "unhealthy cluster") || time.Now().After(deadline) || !driver.Pause(ctx) {
			return err
		}
	}
}

// forget removes the entries of this member from the cluster.
func (s *Server) forget(ctx context.Context, peer *gateway.Client, cluster gateway.Cluster) error {
	for _, m := range s.own(cluster.Members) {
		err := change(ctx, func() error { return peer.Remove(ctx, m.ID) })
		if err != nil && !gateway.Is(err, "member not found") {
			return fmt.Errorf("remove the former entry %s of this member: %w", m.ID, err)
		}
	}
	return nil
}

// Leave removes this member from the cluster, and stops it.
func (s *Server) Leave(ctx context.Context, primaries []string) error {
	m, err := s.mark()
	if err != nil {
		return err
	}
	peer, cluster, err := s.find(ctx, primaries)
	if err != nil {
		return err
	}
	if err := s.forget(ctx, peer, cluster); err != nil {
		return err
	}
	if m.State != "" {
		if err := s.setMark(mark{State: stateLeft, Cluster: m.Cluster}); err != nil {
			return err
		}
	}
	return s.Stop(ctx) // etcd would also end a removed member, after a second
}
