// Package configuration follows the ConfigMaps and Secrets that pod templates use, so that
// pods can be restarted when what is in them changes.
//
// Which ones a template uses, and which keys of them, is found in the template. What they
// hold becomes a hash with the operator's key, so that who may read a StatefulSet can try
// out no guesses at a Secret. The hash stands in the pod template, where a change of it
// restarts pods; a record beside it says what it stands for, so that contents are read only
// when a version changed, and nothing restarts for metadata, for an edit that was taken
// back, or because the operator began to look. A Limiter bounds how many objects restart
// at one time.
package configuration
