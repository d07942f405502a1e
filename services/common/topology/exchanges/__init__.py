"""Exchange types, plug-in group `exchange_types`: what is bound goes in, where a message goes comes out."""
