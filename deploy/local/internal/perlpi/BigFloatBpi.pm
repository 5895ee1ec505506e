package BigFloatBpi;

# The bignum of Perl 5.36.0 (version 0.65) makes Math::BigFloat turn whole
# numbers into Math::BigInt while bpi() computes more than 1000 digits, and
# bpi() dies of it. Later versions switch that off for the time of the
# computation; so does this module, which is loaded with -MBigFloatBpi.

use strict;
use warnings;
use Math::BigFloat;

my $compute = \&Math::BigFloat::bpi;

no warnings 'redefine';
*Math::BigFloat::bpi = sub {
    my $downgrade = Math::BigFloat->downgrade();
    Math::BigFloat->downgrade(undef);
    my $pi = &$compute;
    Math::BigFloat->downgrade($downgrade);
    return $pi;
};

1;
