package rabbitmq

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stateful-operator/stateful-operator/agent/rabbitmq/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

// setPassword is an expression that sets the password of a user, if it has another one. The server reads it
// from the Secret, because it must not be in the arguments of a tool. A user that was deleted stays deleted.
const setPassword = `begin
  User = <<%q>>,
  {ok, Text} = file:read_file(%q),
  Password = string:trim(Text, trailing, [[$\r,$\n], $\r, $\n]),
  case rabbit_auth_backend_internal:exists(User) of
    false -> io:format("answer: deleted~n");
    true ->
      case rabbit_auth_backend_internal:user_login_authentication(User, [{password, Password}]) of
        {ok, _} -> io:format("answer: same~n");
        {refused, _, _} -> ok = rabbit_auth_backend_internal:change_password(User, Password, <<"agent">>), io:format("answer: changed~n")
      end
  end
end.`

// Maintain applies a changed password. A tool takes a second of CPU, so it runs only after a change, and once
// after the start of the container.
func (s *Server) Maintain(ctx context.Context) error {
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil || password == s.applied {
		return err
	}
	running, err := s.running()
	if err != nil || !running || s.Ready(ctx) != nil {
		return err
	}
	m, err := s.record().Read()
	if err != nil || !m.IsMember() {
		return err
	}
	out, err := s.evaluate(ctx, s.node(), fmt.Sprintf(setPassword, user, filepath.Join(s.config.CredentialsDir, settings.PasswordKey)))
	if err != nil {
		return fmt.Errorf("set the password of %s: %w", user, err)
	}
	if slices.Contains(out, "changed") {
		s.log.Printf("the password of %s was changed", user)
	}
	s.applied = password
	return nil
}
