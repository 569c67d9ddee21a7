"""Commands for many gateways: signed, admitted, executed once."""
