"""Who somebody is: providers judge what is claimed (plug-ins), for every service that lets users in."""
