package galera

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/galera/settings"
)

// Primary starts a member while others run. A copy of a large database continues after the command.
func (s *Server) Primary(ctx context.Context, primaries []string) error {
	if _, runs, err := s.prepare(ctx); err != nil || runs {
		return err
	}
	return driver.CopyInBackground(Name, primaries, s.Private.Path(errorFile), s.log, s.copying)
}

// errorFile is a private file with the error of Copy.
const errorFile = "copy-error"

// Copy starts a member, which receives the transactions that it does not have, or a copy of all data.
func (s *Server) Copy(ctx context.Context, primaries []string) error {
	m, runs, err := s.prepare(ctx)
	if err != nil || runs {
		return err
	}
	others := append(s.Others(primaries), s.config.PrimaryHost)
	hosts, cluster, err := s.find(ctx, others)
	if err != nil {
		return err
	}
	p, err := s.joinsAt(ctx, m, cluster)
	if err != nil {
		return err
	}
	// All transactions of a copy that continues are part of the generation, and one that is received has
	// number 0 until it is complete.
	if err := s.setMark(mark{State: stateReceiving, Cluster: cluster.id, Generation: cluster.generation}); err != nil {
		return err
	}
	return s.undoStart(s.join(ctx, others, hosts, cluster, p))
}

// joinsAt returns the position from which a copy receives transactions, or nowhere if it must receive all
// data.
func (s *Server) joinsAt(ctx context.Context, m mark, cluster view) (position, error) {
	if !m.hasData() {
		return nowhere, nil
	}
	stored, err := s.readState()
	if err != nil || !stored.known() {
		return nowhere, err // it can have a part of a change of a table
	}
	if stored.Cluster != cluster.id {
		return nowhere, driver.Errorf(driver.NotInstalled, "%s has data of cluster %s, and the other members run cluster %s: to discard the data, delete the claim of %s",
			s.folder(), stored.Cluster, cluster.id, s.Name)
	}
	p := stored
	if p.Number < 0 {
		if p, err = s.recover(ctx, stored.Cluster); err != nil {
			return nowhere, err
		}
	}
	if p.known() && cluster.generation.extends(m.Generation, p.Number) {
		return p, nil
	}
	s.log.Printf("this copy can have transactions that the cluster does not have, and is replaced")
	return nowhere, s.forgetPosition()
}

// find returns those of the members that are connected to a majority, and their cluster.
func (s *Server) find(ctx context.Context, others []string) (hosts []string, cluster view, err error) {
	err = driver.ErrNoOther
	for _, host := range others {
		found, foundErr := s.ask(ctx, host)
		if foundErr == nil && !found.primary() {
			foundErr = errors.New("it is not connected to a majority")
		}
		if foundErr != nil {
			err = fmt.Errorf("%s: %w", host, foundErr)
			continue
		}
		if len(hosts) == 0 {
			cluster = found
		}
		hosts = append(hosts, host)
	}
	if len(hosts) > 0 {
		return hosts, cluster, nil
	}
	return nil, view{}, err
}

func (s *Server) ask(ctx context.Context, host string) (view, error) {
	db, err := s.peer(host)
	if err != nil {
		return view{}, err
	}
	defer db.Close()
	found, err := inspect(ctx, db)
	if is(err, accessDenied) {
		err = fmt.Errorf("%w: the password of %s is not that of the Secret", err, accounts[len(accounts)-1])
	}
	return found, err
}

const (
	// lonelyLimit is the time without another member after which a join fails. A server that has lost
	// its donor, and its majority, would wait forever.
	lonelyLimit = time.Minute
	// askEvery is the interval in which the other members are asked.
	askEvery = 5 * time.Second
)

// join starts the server as a member of a cluster, and returns when it serves.
func (s *Server) join(ctx context.Context, others, hosts []string, cluster view, p position) error {
	var addresses []string
	for _, host := range hosts {
		addresses = append(addresses, address(host, settings.GroupPort))
	}
	if err := s.writeInit(false); err != nil {
		return err
	}
	err := s.begin(ctx, cluster.generation, p, weightIn(cluster), "--wsrep-cluster-address=gcomm://"+strings.Join(addresses, ","))
	if err != nil {
		return err
	}
	seen, asked := time.Now(), time.Now()
	return s.awaitService(ctx, nowhere, func(ctx context.Context) error {
		if time.Since(asked) < askEvery {
			return nil
		}
		_, _, err := s.find(ctx, others)
		if asked = time.Now(); err == nil || isAnswer(err) {
			seen = asked
		}
		if time.Since(seen) > lonelyLimit {
			return fmt.Errorf("no other member is connected to a majority: %w", err)
		}
		return nil
	})
}
